package fn_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/kio"

	"github.com/belay-krm/belay/fn"
	"github.com/belay-krm/belay/fn/manifest"
)

// item gives one item of a ResourceList, 2.5 KB on average: of ten, four are
// workloads, two ConfigMaps, one a Secret, the rest Services and Ingresses.
func item(w *strings.Builder, i int) {
	app := fmt.Sprintf("app%04d", i/10)
	meta := func(kind, version, name string) {
		fmt.Fprintf(w, "- apiVersion: %s\n  kind: %s\n  metadata:\n    name: %s\n    namespace: ns-%02d\n    labels:\n      app.kubernetes.io/name: %s\n    annotations:\n      config.kubernetes.io/index: '0'\n      config.kubernetes.io/path: '%s/%d.yaml'\n      internal.config.kubernetes.io/index: '0'\n      internal.config.kubernetes.io/path: '%s/%d.yaml'\n",
			version, kind, name, i/10%20, app, app, i%10, app, i%10)
	}
	switch i % 10 {
	case 0, 1:
		meta("ConfigMap", "v1", fmt.Sprintf("%s-config%d", app, i%10))
		fmt.Fprintf(w, "  data:\n    app.properties: |\n      # settings\n%s    flags: a=%d\n", strings.Repeat("      some.key.of.the.app=some value of it\n", 20), i)
	case 2:
		meta("Secret", "v1", app+"-secret")
		fmt.Fprintf(w, "  type: Opaque\n  data:\n    password: aHVudGVyMg==\n    token: %s\n", strings.Repeat("QUJD", 60))
	case 3, 4, 5, 6:
		meta("Deployment", "apps/v1", fmt.Sprintf("%s-%d", app, i%10))
		w.WriteString("  spec:\n    replicas: 3\n    selector:\n      matchLabels:\n        app: x\n    template:\n      metadata:\n        labels:\n          app: x\n      spec:\n        containers:\n")
		for c := range 2 {
			container(w, app, c)
		}
		fmt.Fprintf(w, "        volumes:\n        - name: config\n          configMap:\n            name: %s-config0\n        - name: secrets\n          projected:\n            sources:\n            - secret:\n                name: %s-secret\n", app, app)
	case 7, 8:
		meta("Service", "v1", fmt.Sprintf("%s-%d", app, i%10))
		w.WriteString("  spec:\n    type: ClusterIP\n    selector:\n      app: x\n    ports:\n    - name: http\n      port: 80\n      targetPort: http\n")
	default:
		meta("Ingress", "networking.k8s.io/v1", app)
		fmt.Fprintf(w, "  spec:\n    tls:\n    - hosts:\n      - %s.example.com\n      secretName: %s-tls\n    rules:\n    - host: %s.example.com\n", app, app, app)
	}
}

func container(w *strings.Builder, app string, c int) {
	fmt.Fprintf(w, `        - name: c%d
          image: registry.example.com/team/%s:v1.%d
          imagePullPolicy: IfNotPresent
          args:
          - --config=/etc/app/app.properties
          - --log-level=info # not debug
          ports:
          - name: http
            containerPort: 8080
            protocol: TCP
          env:
          - name: POD_NAME
            valueFrom:
              fieldRef:
                fieldPath: metadata.name
          - name: FLAGS
            valueFrom:
              configMapKeyRef:
                name: %s-config0
                key: flags
          - name: PASSWORD
            valueFrom:
              secretKeyRef:
                name: %s-secret
                key: password
          envFrom:
          - configMapRef:
              name: %s-config1
          resources:
            requests:
              cpu: 100m
              memory: 128Mi
            limits:
              cpu: "1"
              memory: 512Mi
          readinessProbe:
            httpGet:
              path: /healthz
              port: http
            periodSeconds: 10
          volumeMounts:
          - name: config
            mountPath: /etc/app
            readOnly: true
`, c, app, c, app, app, app)
}

func resourceList(n int) []byte {
	var w strings.Builder
	w.WriteString("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n")
	for i := range n {
		item(&w, i)
	}
	w.WriteString("functionConfig:\n  apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: config\n  data:\n    digests.mode: \"off\"\n")
	return []byte(w.String())
}

// BenchmarkFunction hydrates a ResourceList without a network: it names three of
// ten objects and makes all references follow.
func BenchmarkFunction(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		in := resourceList(n)
		b.Run(fmt.Sprintf("belay/%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				list, err := manifest.Read(in)
				if err != nil {
					b.Fatal(err)
				}
				cfg, err := fn.ParseConfig(list.FunctionConfig)
				if err != nil {
					b.Fatal(err)
				}
				if rep := fn.Process(b.Context(), list, cfg, fn.Options{}); rep.Versions.Versioned != n*3/10 {
					b.Fatalf("versioned %d", rep.Versions.Versioned)
				}
				if _, err := list.Output(); err != nil {
					b.Fatal(err)
				}
			}
		})
		// What the smallest function that is built with kyaml's framework costs.
		b.Run(fmt.Sprintf("kyaml-noop/%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				noop := framework.ResourceListProcessorFunc(func(*framework.ResourceList) error { return nil })
				rw := &kio.ByteReadWriter{Reader: bytes.NewReader(in), Writer: &bytes.Buffer{}, KeepReaderAnnotations: true}
				if err := framework.Execute(noop, rw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
