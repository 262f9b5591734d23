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

// classify says in a person's words why a registry did not answer, and what to
// do next.
func classify(host string, err error) *digest.Error {
	fail := func(c digest.Class, hint, format string, a ...any) *digest.Error {
		return &digest.Error{Class: c, Hint: hint, Err: fmt.Errorf(format, a...)}
	}
	const offline = "check the connection, or set digests.mode: locked"
	who := culprit(host, err)
	var te *transport.Error
	var off *forbidden
	var dns *net.DNSError
	switch {
	case errors.As(err, &te):
		return classifyStatus(host, te, fail)
	case errors.As(err, &off):
		return fail(digest.Forbidden, "where digests.network.allow is used, it must name all that may be contacted", "%s", cause(err))
	case errors.Is(err, errLinkLocal):
		return fail(digest.Forbidden, "name a registry; if this is one, digests.network.allow must name it, and all others", "%s: %w", who, errLinkLocal)
	case errors.Is(err, errRedirects):
		return fail(digest.Network, "check the registry", "%s: %w", who, errRedirects)
	case errors.Is(err, errLie):
		return fail(digest.Malformed, "check the registry, and what is between", "%s: %s", host, cause(err))
	case isUntrusted(err):
		return fail(digest.TLS, "name the authority in digests.network.registries, or with SSL_CERT_FILE", "the certificate of %s is not trusted: %s", who, cause(err))
	case isPlain(err):
		return fail(digest.TLS, "set plainHTTP for it in digests.network.registries", "%s does not speak TLS", who)
	case errors.As(err, &dns) && dns.IsNotFound:
		return fail(digest.Network, "check the name of the registry", "no such host: %s", dns.Name)
	case isTimeout(err):
		return fail(digest.Network, offline, "%s does not answer", who)
	}
	return fail(digest.Network, offline, "asking %s: %s", who, cause(err))
}

// culprit gives the host that failed: the registry, or where it led.
func culprit(host string, err error) string {
	at := host
	var te *transport.Error
	var ue *url.Error
	switch {
	case errors.As(err, &te) && te.Request != nil:
		at = te.Request.URL.Host
	case errors.As(err, &ue):
		if u, errURL := url.Parse(ue.URL); errURL == nil {
			at = u.Host
		}
	}
	if at == host {
		return host
	}
	return at + " (for " + host + ")"
}

// isTimeout tells whether an answer did not come in time.
func isTimeout(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// isPlain tells whether a registry answered TLS with plain HTTP.
func isPlain(err error) bool {
	var header tls.RecordHeaderError
	return errors.As(err, &header) || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
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
func classifyStatus(host string, te *transport.Error, fail failure) *digest.Error {
	who := culprit(host, te)
	switch te.StatusCode {
	case http.StatusNotFound:
		if te.Request != nil && !strings.Contains(te.Request.URL.Path, "/manifests/") && !strings.Contains(te.Request.URL.Path, "/blobs/") {
			return fail(digest.Network, "check the name of the registry", "%s answers 404: it is no registry, or no token service", who)
		}
		return fail(digest.NotFound, "check the tag, or set digests.mode: locked", "no such tag")
	case http.StatusUnauthorized:
		if host == name.DefaultRegistry {
			return fail(digest.Auth, "check the name, or run docker login", "is private, or does not exist")
		}
		return fail(digest.Auth, "docker login "+host, "%s wants credentials, or others", who)
	case http.StatusForbidden:
		return fail(digest.Auth, "check the name, and what the credentials may read", "%s forbids it", who)
	case http.StatusTooManyRequests:
		return fail(digest.RateLimit, "wait, log in, or set digests.mode: locked", "%s has been asked too often", who)
	}
	return fail(digest.Network, "try again", "%s answers %d %s", who, te.StatusCode, strings.ToLower(http.StatusText(te.StatusCode)))
}

// cause gives the message of a failed request without its URL, which may hold
// a token.
func cause(err error) string { return firstLine(asCause(err).Error()) }

func asCause(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
