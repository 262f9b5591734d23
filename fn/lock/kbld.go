package lock

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	"go.yaml.in/yaml/v3"
)

// An Import is what a lock of another tool knows.
type Import struct {
	// Images gives the digest of each canonical tag reference, as in [Lock].
	Images map[string]string
	// Skipped says which entries cannot be taken over, and why, in input order.
	Skipped []string
}

// kbldFile is a lock of kbld: its own, or in the form of imgpkg.
// https://carvel.dev/kbld/docs/latest/config/#overrides
// https://carvel.dev/imgpkg/docs/latest/resources/#imageslock-configuration
type kbldFile struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Overrides  []struct {
		Image    string `yaml:"image"`
		NewImage string `yaml:"newImage"`
	} `yaml:"overrides"`
	Images []struct {
		Image       string            `yaml:"image"`
		Annotations map[string]string `yaml:"annotations"`
	} `yaml:"images"`
}

// ReadKbld reads a lock that kbld wrote, with --lock-output or with
// --imgpkg-lock-output. The error is for what is no such file, and for two
// digests of one tag.
func ReadKbld(data []byte) (Import, error) {
	out := Import{Images: map[string]string{}}
	known := false
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var f kbldFile
		err := dec.Decode(&f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Import{}, fmt.Errorf("is no lock of kbld: %w", err)
		}
		switch {
		case f.APIVersion == "kbld.k14s.io/v1alpha1" && (f.Kind == "Config" || f.Kind == "ImageOverrides"):
			for _, o := range f.Overrides {
				if err := out.add(o.Image, o.NewImage); err != nil {
					return Import{}, err
				}
			}
		case f.Kind == "ImagesLock" && (f.APIVersion == "imgpkg.carvel.dev/v1alpha1" || f.APIVersion == "imgpkg.k14s.io/v1alpha1"):
			for _, i := range f.Images {
				id := i.Annotations["kbld.carvel.dev/id"]
				if id == "" {
					id = i.Annotations["kbld.k14s.io/id"]
				}
				if err := out.add(id, i.Image); err != nil {
					return Import{}, err
				}
			}
		default:
			continue
		}
		known = true
	}
	if known && len(out.Images)+len(out.Skipped) == 0 {
		return Import{}, errors.New("holds no images: is it the configuration of kbld, and not a lock?")
	}
	if !known {
		return Import{}, errors.New("is no lock of kbld: a Config of kbld.k14s.io/v1alpha1 or an ImagesLock of imgpkg.carvel.dev/v1alpha1 is expected")
	}
	return out, nil
}

// add takes in that a reference stands for an image with a digest.
func (i *Import) add(ref, image string) error {
	skip := func(why string) error {
		i.Skipped = append(i.Skipped, fmt.Sprintf("%s: %s", ref, why))
		return nil
	}
	if ref == "" {
		ref = "an entry for " + image
		return skip("it does not say for what it stands")
	}
	d, err := name.NewDigest(image, name.WeakValidation)
	if err != nil {
		return skip(fmt.Sprintf("%s has no digest", image))
	}
	if _, err := name.NewDigest(ref, name.WeakValidation); err == nil {
		return skip("has a digest already")
	}
	tag, err := name.NewTag(ref, name.WeakValidation)
	if err != nil {
		return skip("is not the name of an image")
	}
	if tag.Repository.Name() != d.Repository.Name() {
		return skip(fmt.Sprintf("stands for an image of another repository, %s", d.Repository.Name()))
	}
	if other, ok := i.Images[tag.Name()]; ok && other != d.DigestStr() {
		return fmt.Errorf("%s has two digests: %s and %s", tag.Name(), other, d.DigestStr())
	}
	i.Images[tag.Name()] = d.DigestStr()
	return nil
}
