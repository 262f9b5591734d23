package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/belay-krm/belay/fn/digest"
)

// classify says in a person's words why a tag could not be resolved, and what
// to do next.
func classify(tag name.Tag, err error) *digest.Error {
	host := tag.RegistryStr()
	fail := func(c digest.Class, hint, format string, a ...any) *digest.Error {
		return &digest.Error{Class: c, Hint: hint, Err: fmt.Errorf(format, a...)}
	}
	var te *transport.Error
	if errors.As(err, &te) {
		return classifyStatus(tag, te, fail)
	}
	var dns *net.DNSError
	var netErr net.Error
	switch {
	case isUntrusted(err):
		return fail(digest.TLS, "SSL_CERT_FILE names a file of authorities to trust", "the certificate of %s is not trusted: %s", host, cause(err))
	case errors.Is(err, errLinkLocal):
		return fail(digest.Network, "name a registry", "%s: %w", host, errLinkLocal)
	case errors.As(err, &dns):
		return fail(digest.Network, "check the name of the registry", "no such host: %s", dns.Name)
	case errors.As(err, &netErr) && netErr.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return fail(digest.Network, "check the connection, or set digests.mode: locked", "%s does not answer", host)
	}
	return fail(digest.Network, "check the connection, or set digests.mode: locked", "asking %s: %s", host, cause(err))
}

// isUntrusted tells whether a certificate was refused.
func isUntrusted(err error) bool {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var hostname x509.HostnameError
	var verification *tls.CertificateVerificationError
	return errors.As(err, &unknown) || errors.As(err, &invalid) || errors.As(err, &hostname) || errors.As(err, &verification)
}

type failure func(c digest.Class, hint, format string, a ...any) *digest.Error

// classifyStatus speaks of an answer that is no success.
func classifyStatus(tag name.Tag, te *transport.Error, fail failure) *digest.Error {
	host := tag.RegistryStr()
	switch te.StatusCode {
	case http.StatusNotFound:
		return fail(digest.NotFound, "check the tag, or set digests.mode: locked", "no such tag")
	case http.StatusUnauthorized:
		if host == name.DefaultRegistry {
			return fail(digest.Auth, "check the name, or run docker login", "is private, or does not exist")
		}
		return fail(digest.Auth, "docker login "+host, "%s wants credentials, or others", host)
	case http.StatusForbidden:
		return fail(digest.Auth, "check the name, and what the credentials may read", "%s forbids it", host)
	case http.StatusTooManyRequests:
		return fail(digest.RateLimit, "wait, log in, or set digests.mode: locked", "%s has been asked too often", host)
	}
	return fail(digest.Network, "try again", "%s answers %d %s", host, te.StatusCode, strings.ToLower(http.StatusText(te.StatusCode)))
}

// isMissingHeader tells whether a HEAD request was answered without what
// makes the answer useful.
func isMissingHeader(err error) bool {
	return strings.Contains(err.Error(), "response did not include")
}

// cause gives the innermost message of a failed request: without its URL,
// which may hold a token.
func cause(err error) string {
	var ue *url.Error
	if errors.As(err, &ue) {
		return firstLine(ue.Err.Error())
	}
	return firstLine(err.Error())
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
