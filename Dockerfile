# syntax=docker/dockerfile:1
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=(devel)
RUN CGO_ENABLED=0 go build -trimpath \
    -ldflags "-s -w -X github.com/belay-krm/belay/internal/cli.release=${VERSION}" \
    -o /belay .

# distroless/static has the certificates of authorities that registries need,
# and a passwd file for the user that an orchestrator asks for.
FROM gcr.io/distroless/static-debian12:nonroot
LABEL org.opencontainers.image.title="belay" \
      org.opencontainers.image.description="Makes everything that a Kubernetes manifest depends on fast" \
      org.opencontainers.image.source="https://github.com/belay-krm/belay" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /belay /usr/local/bin/belay
ENTRYPOINT ["belay"]
