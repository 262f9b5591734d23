package cli

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belay-krm/belay/fn"
	"github.com/belay-krm/belay/fn/manifest"
	"github.com/belay-krm/belay/fn/version"
)

// An event is one line of the audit record: a CloudEvent.
// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
type event struct {
	SpecVersion     string    `json:"specversion"`
	Type            string    `json:"type"`
	Source          string    `json:"source"`
	Subject         string    `json:"subject"`
	ID              string    `json:"id"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Data            eventData `json:"data"`
}

// eventData says what a run did. It names objects and never holds their data.
type eventData struct {
	Outcome  string        `json:"outcome"` // succeeded or failed
	Inputs   string        `json:"inputs"`  // sha256 of the paths and bytes of what was read
	Images   []eventImage  `json:"images"`
	Versions []reviewLine  `json:"versions"`
	Dropped  []reviewLine  `json:"dropped"`
	Rolls    []reviewLine  `json:"rolls"`
	Results  []eventResult `json:"results"`
}

// An eventImage is an image with the digest that it has after the run.
type eventImage struct {
	File   string `json:"file,omitempty"`
	Object string `json:"object"`
	Field  string `json:"field"`
	Image  string `json:"image"`
	Digest string `json:"digest,omitempty"`
}

type eventResult struct {
	Severity string `json:"severity"`
	File     string `json:"file,omitempty"`
	Message  string `json:"message"`
}

// openRecords makes sure that a line can be appended to each record file, before
// anything is written.
func (j *job) openRecords() error {
	var errs []error
	for _, p := range j.packs {
		file := j.recordFile(p)
		switch {
		case file == "":
			continue
		case isManifestFile(file):
			errs = append(errs, usagef("record %s: is called like a manifest, which it would break (call it %s)", file, strings.TrimSuffix(file, filepath.Ext(file))+".jsonl"))
			continue
		}
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			errs = append(errs, usagef("record: %v (name a file in a folder that is there)", plain(err)))
		}
	}
	return errors.Join(errs...)
}

// record appends a line for the run to each record file that is asked for.
func (j *job) record(start time.Time, failed bool) error {
	byFile := map[string][]*pack{}
	var files []string
	for _, p := range j.packs {
		file := j.recordFile(p)
		if file == "" {
			continue
		}
		if byFile[file] == nil {
			files = append(files, file)
		}
		byFile[file] = append(byFile[file], p)
	}
	var errs []error
	for _, file := range files {
		if err := appendLine(file, j.event(byFile[file], start, failed)); err != nil {
			errs = append(errs, fmt.Errorf("writing the record: %w", plain(err)))
		}
	}
	return errors.Join(errs...)
}

// recordFailure records a run whose findings were printed.
func (j *job) recordFailure(start time.Time) error {
	if err := j.record(start, true); err != nil {
		printLines(j.env.Stderr, err)
	}
	return errFindings
}

// recordFile gives the record of a package; "" for none.
func (j *job) recordFile(p *pack) string {
	if !j.records {
		return ""
	}
	if j.recordTo != "" || p.config.Record == "" || filepath.IsAbs(p.config.Record) {
		return cmp.Or(j.recordTo, p.config.Record)
	}
	return filepath.Join(p.configDir, p.config.Record)
}

// event says what a run did with some packages.
func (j *job) event(packs []*pack, start time.Time, failed bool) event {
	e := event{
		SpecVersion: "1.0", Type: "dev.belay.hydrated.v1", Source: "https://github.com/belay-krm/belay", Subject: strings.Join(j.paths, " "),
		ID: rand.Text(), Time: start.UTC(), DataContentType: "application/json",
		Data: eventData{
			Outcome: "succeeded", Images: []eventImage{}, Versions: []reviewLine{}, Dropped: []reviewLine{}, Rolls: []reviewLine{}, Results: []eventResult{},
			Inputs: hashInputs(packs),
		},
	}
	if failed {
		e.Data.Outcome = "failed"
	}
	rev := review{}
	for _, p := range packs {
		if j.output == "" {
			rev.add(p, templateEdited)
		} else {
			rev.add(p, j.sinceOutput(p))
			rev.Versions = notThere(rev.Versions, p.versions)
		}
		e.Data.addResults(p.list)
		if failed {
			continue
		}
		for _, f := range fn.Images(p.list, p.config, false) {
			image, _, _ := strings.Cut(f.Image, "@")
			e.Data.Images = append(e.Data.Images, eventImage{f.Object.File.Path, f.Object.ID.String(), f.Field, image, f.Digest})
		}
	}
	if !failed { // else nothing was written
		e.Data.Versions, e.Data.Dropped, e.Data.Rolls = append(e.Data.Versions, rev.Versions...), append(e.Data.Dropped, rev.Dropped...), append(e.Data.Rolls, rev.Rolls...)
	}
	return e
}

// sinceOutput gives what tells whether a pod template is another than in the
// previous output, which the sources do not know.
func (j *job) sinceOutput(p *pack) func(*manifest.Object) bool {
	before := j.previous(p)
	return func(o *manifest.Object) bool {
		was := before(o)
		return was == nil || !manifest.Equal(was.Root().Lookup("spec", "template"), o.Root().Lookup("spec", "template"))
	}
}

// notThere leaves out the versions that the previous output has as current, and
// gives the others the name that they had there.
func notThere(lines []reviewLine, previous []*manifest.Object) []reviewLine {
	names := map[string]string{} // by the object without version
	for _, v := range previous {
		if v.Annotation(version.RetainedAnnotation) == "" {
			id := v.ID
			id.Name = v.Annotation(version.NameAnnotation)
			names[id.String()] = v.ID.Name
		}
	}
	var out []reviewLine
	for _, l := range lines {
		l.From = cmp.Or(names[l.Object], l.From)
		if l.From != l.To {
			out = append(out, l)
		}
	}
	return out
}

func (d *eventData) addResults(list *manifest.List) {
	for _, r := range list.Results {
		file := ""
		if r.Object != nil {
			file = r.Object.File.Path
		}
		d.Results = append(d.Results, eventResult{string(r.Severity), file, r.String()})
	}
}

// hashInputs gives one hash of all that was read.
func hashInputs(packs []*pack) string {
	var lines []string
	for _, p := range packs {
		for _, in := range p.inputs {
			lines = append(lines, fmt.Sprintf("%s %x", in.Path, sha256.Sum256(in.Data)))
		}
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// appendLine adds a value as one line of JSON to the end of a file.
func appendLine(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	return errors.Join(err, f.Close())
}
