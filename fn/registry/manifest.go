package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/belay-krm/belay/fn/digest"
)

// maxManifest bounds what is read of a manifest, as registries do.
// https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pushing-manifests
const maxManifest = 4 << 20

// accept gives the formats that are understood, the newest first: an index
// before its parts.
func accept() []string {
	return []string{
		string(types.OCIImageIndex), string(types.DockerManifestList),
		string(types.OCIManifestSchema1), string(types.DockerManifestSchema2),
		string(types.DockerManifestSchema1Signed), string(types.DockerManifestSchema1),
	}
}

// manifest gives what a tag or a digest stands for.
func (p *place) manifest(ctx context.Context, id string) (digest.Image, error) {
	resp, err := p.do(ctx, http.MethodHead, "/manifests/"+id)
	if err != nil {
		return digest.Image{}, err
	}
	defer drain(resp)
	if headUnsupported(resp.StatusCode) {
		return p.full(ctx, id)
	}
	if err := transport.CheckError(resp, http.StatusOK); err != nil {
		return digest.Image{}, err
	}
	image := digest.Image{MediaType: mediaType(resp)}
	if image.Digest, err = v1.NewHash(resp.Header.Get("Docker-Content-Digest")); err != nil || !slices.Contains(accept(), string(image.MediaType)) {
		return p.full(ctx, id) // it forgets a header, or is something else
	}
	return image, same(id, image.Digest)
}

// headUnsupported tells whether a registry that failed a HEAD request may still
// answer a GET. A GET counts as a pull, so that it is made for no other reason.
func headUnsupported(status int) bool {
	return status == http.StatusMethodNotAllowed || status == http.StatusBadRequest || status == http.StatusNotImplemented
}

func mediaType(resp *http.Response) types.MediaType {
	t, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return types.MediaType(strings.TrimSpace(t))
}

// same wants that what was asked for by digest has it.
func same(id string, got v1.Hash) error {
	if strings.Contains(id, ":") && id != got.String() {
		return fmt.Errorf("%w: asked for %s, it gives %s", errLie, id, got)
	}
	return nil
}

// full reads a manifest and hashes it.
func (p *place) full(ctx context.Context, id string) (digest.Image, error) {
	image, body, err := p.get(ctx, "/manifests/"+id, id)
	if err == nil {
		err = isManifest(image.MediaType, body)
	}
	return image, err
}

// isManifest wants what was read to be a manifest, and not the page of a proxy.
// https://github.com/opencontainers/image-spec/blob/main/manifest.md
func isManifest(t types.MediaType, body []byte) error {
	var m struct {
		SchemaVersion int `json:"schemaVersion"`
	}
	if err := json.Unmarshal(body, &m); err != nil || m.SchemaVersion == 0 {
		return fmt.Errorf("%w: no manifest, but %s", errLie, cmp.Or(string(t), "something else"))
	}
	return nil
}

// get reads a manifest or a blob, and hashes it. id is what was asked for.
func (p *place) get(ctx context.Context, path, id string) (digest.Image, []byte, error) {
	resp, err := p.do(ctx, http.MethodGet, path)
	if err != nil {
		return digest.Image{}, nil, err
	}
	defer drain(resp)
	if err := transport.CheckError(resp, http.StatusOK); err != nil {
		return digest.Image{}, nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxManifest+1))
	if err != nil {
		return digest.Image{}, nil, p.failed(ctx, err)
	}
	if len(body) > maxManifest {
		return digest.Image{}, nil, fmt.Errorf("%w: more than %d MiB", errLie, maxManifest>>20)
	}
	image := digest.Image{MediaType: mediaType(resp)}
	says, errHeader := v1.NewHash(resp.Header.Get("Docker-Content-Digest"))
	if errHeader == nil && image.MediaType == types.DockerManifestSchema1Signed {
		image.Digest = says // which leaves out the signatures
		return image, body, same(id, says)
	}
	algorithm := "sha256"
	if alg, _, ok := strings.Cut(id, ":"); ok {
		algorithm = alg
	} else if errHeader == nil {
		algorithm = says.Algorithm
	}
	if image.Digest, err = hash(algorithm, body); err != nil {
		return digest.Image{}, nil, err
	}
	if errHeader == nil && says != image.Digest {
		return digest.Image{}, nil, fmt.Errorf("%w: its header says %s, and its content is %s", errLie, says, image.Digest)
	}
	return image, body, same(id, image.Digest)
}

func hash(algorithm string, body []byte) (v1.Hash, error) {
	h, err := v1.Hasher(algorithm)
	if err != nil {
		return v1.Hash{}, err
	}
	_, _ = h.Write(body) // never fails
	return v1.NewHash(fmt.Sprintf("%s:%x", algorithm, h.Sum(nil)))
}

// platforms gives the platforms of an image: those that an index lists, or the
// one of a configuration.
// https://github.com/opencontainers/image-spec/blob/main/image-index.md
func (p *place) platforms(ctx context.Context, id string) ([]string, error) {
	image, body, err := p.get(ctx, "/manifests/"+id, id)
	if err != nil {
		return nil, err
	}
	var m struct {
		Manifests []v1.Descriptor `json:"manifests"`
		Config    v1.Descriptor   `json:"config"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, fmt.Errorf("%w: a manifest that is no JSON", errLie)
	}
	if image.MediaType.IsImage() || len(m.Manifests) == 0 && m.Config.Digest.Hex != "" {
		return p.configPlatform(ctx, m.Config.Digest.String())
	}
	var out []string
	for _, d := range m.Manifests {
		// Attestations are listed as unknown/unknown.
		// https://docs.docker.com/build/metadata/attestations/attestation-storage/
		if d.Platform != nil && d.Platform.OS != "unknown" {
			out = append(out, platform(*d.Platform))
		}
	}
	return out, nil
}

func (p *place) configPlatform(ctx context.Context, id string) ([]string, error) {
	_, body, err := p.get(ctx, "/blobs/"+id, id)
	if err != nil {
		return nil, err
	}
	var config v1.Platform
	if err := json.Unmarshal(body, &config); err != nil {
		return nil, fmt.Errorf("%w: a configuration that is no JSON", errLie)
	}
	if config.OS == "" && config.Architecture == "" {
		return nil, nil // not something to run
	}
	return []string{platform(config)}, nil
}

func platform(p v1.Platform) string {
	s := p.OS + "/" + p.Architecture
	if p.Variant != "" {
		s += "/" + p.Variant
	}
	return s
}
