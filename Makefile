TOOL := go tool -modfile=tools/go.mod
T ?= 20s

.PHONY: demo test golden lint fuzz bench check

demo: ; @go run ./internal/demo
test: ; go test ./... && cd e2e && go test -count=1 ./...
golden: ; go test . ./fn -update && git diff --stat -- testdata docs
lint: ; $(TOOL) golangci-lint run ./... && cd e2e && go tool -modfile=../tools/go.mod golangci-lint run --config ../.golangci.yml ./...
fuzz: ; @for p in $$(go list ./...); do for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do echo "$$p $$f" && go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(T) $$p || exit 1; done; done
bench: ; go test ./... -run '^$$' -bench . -count $(or $(COUNT),6) | tee bench.out && $(TOOL) benchstat bench.out
check: lint test ; go vet ./... && go mod tidy -diff && cd tools && go mod tidy -diff && cd ../e2e && go mod tidy -diff
