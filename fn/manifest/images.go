package manifest

import "strings"

// An ImageField is a field that names an image.
type ImageField struct {
	// Node holds the reference; a scalar, not always a string.
	Node *Node
	// Pull is the pull policy beside it; "" where none is given.
	Pull string
}

// imageKeys are the lists of containers of a PodSpec. Any mapping that has one
// of them, in any kind and at any depth, counts as a PodSpec: custom kinds
// embed them everywhere.
// https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#PodSpec
var imageKeys = map[string]bool{"containers": true, "initContainers": true, "ephemeralContainers": true}

// An imageRow is an image field of a kind that names images in its own way.
type imageRow struct {
	group string   // API group; any version
	kinds []string // nil for all kinds of the group
	path  []string // from the root of the object; "[]" goes into each element
}

// imageRows are the image fields besides those of a PodSpec. To add one, add a
// row, with the source of the rule.
var imageRows = []imageRow{
	// https://tekton.dev/docs/pipelines/tasks/#configuring-a-task
	{"tekton.dev", []string{"Task", "ClusterTask"}, []string{"spec", "steps", "[]", "image"}},
	{"tekton.dev", []string{"Task", "ClusterTask"}, []string{"spec", "sidecars", "[]", "image"}},
	{"tekton.dev", []string{"Task", "ClusterTask"}, []string{"spec", "stepTemplate", "image"}},
	// https://argo-workflows.readthedocs.io/en/latest/fields/#template
	{"argoproj.io", []string{"Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate"}, []string{"spec", "templates", "[]", "container", "image"}},
	{"argoproj.io", []string{"Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate"}, []string{"spec", "templates", "[]", "script", "image"}},
	{"argoproj.io", []string{"Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate"}, []string{"spec", "templates", "[]", "sidecars", "[]", "image"}},
	// https://prometheus-operator.dev/docs/api-reference/api/
	{"monitoring.coreos.com", []string{"Prometheus", "PrometheusAgent", "Alertmanager", "ThanosRuler"}, []string{"spec", "image"}},
}

// IsSchema tells whether an object describes other objects rather than running
// anything: what looks like a PodSpec inside of it is a pattern or a schema.
func (o *Object) IsSchema() bool {
	group := o.ID.Group()
	return group == "apiextensions.k8s.io" || group == "kyverno.io" || strings.HasSuffix(group, ".kyverno.io") ||
		strings.HasSuffix(group, ".gatekeeper.sh")
}

// Images gives the fields of an object that name images, in the order of the
// text: those of every PodSpec, with image volumes, and those of the table of
// other kinds. Schemas and policies have none.
func (o *Object) Images() []ImageField {
	if o.IsSchema() {
		return nil
	}
	out := structuralImages(o.root, nil)
	for _, row := range imageRows {
		if row.covers(o.ID) {
			out = followImages(o.root, row.path, out)
		}
	}
	return out
}

func (r imageRow) covers(id ID) bool {
	if id.Group() != r.group {
		return false
	}
	for _, k := range r.kinds {
		if k == id.Kind {
			return true
		}
	}
	return r.kinds == nil
}

// structuralImages adds the images of the PodSpecs at and below n.
func structuralImages(n *Node, out []ImageField) []ImageField {
	if n.kind == Sequence {
		for _, c := range n.content {
			if c.kind != Scalar {
				out = structuralImages(c, out)
			}
		}
		return out
	}
	for k, v := range n.Pairs() {
		if v.kind == Scalar {
			continue
		}
		if v.kind == Sequence && imageKeys[k.value] {
			out = containerImages(v, out)
		}
		if v.kind == Sequence && k.value == "volumes" {
			out = volumeImages(v, out)
		}
		out = structuralImages(v, out)
	}
	return out
}

func containerImages(list *Node, out []ImageField) []ImageField {
	for _, c := range list.content {
		if image := c.Get("image"); image != nil && image.kind == Scalar {
			out = append(out, ImageField{image, c.Get("imagePullPolicy").Value()})
		}
	}
	return out
}

// volumeImages adds the images of image volumes.
// https://kubernetes.io/docs/concepts/storage/volumes/#image
func volumeImages(list *Node, out []ImageField) []ImageField {
	for _, v := range list.content {
		image := v.Get("image")
		if ref := image.Get("reference"); ref != nil && ref.kind == Scalar {
			out = append(out, ImageField{ref, image.Get("pullPolicy").Value()})
		}
	}
	return out
}

// followImages adds the scalars that path leads to.
func followImages(n *Node, path []string, out []ImageField) []ImageField {
	switch {
	case n == nil:
		return out
	case len(path) == 0:
		if n.kind == Scalar {
			out = append(out, ImageField{n, n.parent.Get("imagePullPolicy").Value()})
		}
		return out
	case path[0] != "[]":
		return followImages(n.Get(path[0]), path[1:], out)
	}
	for _, c := range n.Elems() {
		out = followImages(c, path[1:], out)
	}
	return out
}
