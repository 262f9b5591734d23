package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/belay-krm/belay/fn/digest"
)

// errLinkLocal is the error for addresses at which clouds serve credentials: a
// manifest in a pull request must not make CI ask there.
var errLinkLocal = errors.New("link-local addresses are refused")

// errRedirects is the error for a registry that sends its clients in circles.
var errRedirects = errors.New("too many redirects")

// errLie is the error for answers that contradict themselves.
var errLie = errors.New("the answer cannot be right")

// forbidden is the error for a host that must not be contacted.
type forbidden struct{ host string }

// Error implements error.
func (f *forbidden) Error() string { return f.host + " may not be contacted" }

// maxRedirects bounds how often an answer may lead elsewhere.
const maxRedirects = 5

// dockerHub are the hosts that make up Docker Hub; blobs come from the last two.
// https://docs.docker.com/desktop/setup/allow-list/
var dockerHub = []string{
	name.DefaultRegistry, "registry-1.docker.io", "auth.docker.io", "production.cloudflare.docker.com",
	"docker-images-prod.6aa30f8b08e16409b46e0173d6de2f56.r2.cloudflarestorage.com",
}

// A guard knows which hosts may be contacted.
type guard struct{ allow []string } // patterns; nil for any

func newGuard(allow []string) *guard {
	g := &guard{}
	for _, a := range allow {
		g.allow = append(g.allow, a)
		if digest.CanonicalHost(a) == name.DefaultRegistry {
			g.allow = append(g.allow, dockerHub...)
		}
	}
	return g
}

// allows tells whether a host may be contacted.
func (g *guard) allows(host string) bool {
	if g.allow == nil || g.names(host) {
		return true
	}
	for _, p := range g.allow {
		if ok, err := path.Match(p, host); ok && err == nil {
			return true
		}
	}
	return false
}

// names tells whether a host is allowed by its name, and not just by a pattern
// or since all are.
func (g *guard) names(host string) bool {
	return slices.Contains(g.allow, host)
}

// transport gives a transport that contacts no other hosts, that keeps
// connections open for all workers, and that takes proxies from the environment.
func (g *guard) transport(config *tls.Config) http.RoundTripper {
	dialer := &net.Dialer{KeepAlive: 30 * time.Second, Control: refuseLinkLocal}
	free := &net.Dialer{KeepAlive: 30 * time.Second}
	base := &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if g.names(address) || g.names(strings.TrimSuffix(strings.TrimSuffix(address, ":443"), ":80")) {
				return free.DialContext(ctx, network, address)
			}
			return dialer.DialContext(ctx, network, address)
		},
		ForceAttemptHTTP2:   true,
		TLSClientConfig:     config,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     90 * time.Second,
	}
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if err := g.check(r.URL.Host); err != nil {
			return nil, err
		}
		return base.RoundTrip(r)
	})
}

// check refuses hosts before a connection is opened, also where a proxy would
// open it.
func (g *guard) check(host string) error {
	if !g.allows(host) {
		return &forbidden{host}
	}
	if ip, err := netip.ParseAddr(hostname(host)); err == nil && isLinkLocal(ip) && !g.names(host) {
		return fmt.Errorf("asking %s: %w", host, errLinkLocal)
	}
	return nil
}

// redirect says which redirects are followed. Credentials do not go along to
// another host: see http.Client.
func (g *guard) redirect(req *http.Request, via []*http.Request) error {
	switch last := via[len(via)-1]; {
	case len(via) > maxRedirects:
		return errRedirects
	case last.Method == http.MethodPost && req.URL.Host != last.URL.Host:
		return fmt.Errorf("a redirect takes a token along: %w", &forbidden{req.URL.Host})
	case last.URL.Scheme == "https" && req.URL.Scheme != "https":
		return fmt.Errorf("a redirect leaves TLS: %w", &forbidden{req.URL.Host})
	case req.URL.Host != last.URL.Host && isPrivate(req.URL.Hostname()) && !isPrivate(last.URL.Hostname()) && !g.names(req.URL.Host):
		return fmt.Errorf("a redirect: %w", &forbidden{req.URL.Host})
	}
	return nil
}

// refuseLinkLocal looks at the address after its name was resolved.
func refuseLinkLocal(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dialing %s: %w", address, err)
	}
	if isLinkLocal(ap.Addr()) {
		return fmt.Errorf("dialing %s: %w", address, errLinkLocal)
	}
	return nil
}

// metadataIPv6 is where AWS serves credentials over IPv6; it is no link-local
// address.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
var metadataIPv6 = netip.MustParseAddr("fd00:ec2::254")

func isLinkLocal(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a == metadataIPv6
}

// isPrivate tells whether a host is the address of something that not everybody
// reaches.
func isPrivate(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	a, err := netip.ParseAddr(host)
	if err != nil {
		return host == "localhost" || strings.HasSuffix(host, ".localhost")
	}
	return a.IsPrivate() || a.IsLoopback() || a.IsUnspecified() || isLinkLocal(a)
}

// isLoopback tells whether a host is this machine.
func isLoopback(host string) bool {
	host = hostname(host)
	a, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && a.IsLoopback()
}

// hostname gives a host without its port and brackets.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.Trim(host, "[]")
}

// tlsConfig gives what a registry needs besides the defaults; nil for nothing.
func tlsConfig(r digest.Registry) (*tls.Config, error) {
	if r.CA == "" && r.Cert == "" && !r.SkipVerify {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: r.SkipVerify} //nolint:gosec // the user asks for it, for one registry
	if r.CA != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM([]byte(r.CA)) {
			return nil, errors.New("ca: holds no certificate in PEM form")
		}
		config.RootCAs = pool
	}
	if r.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(r.Cert), []byte(r.Key))
		if err != nil {
			return nil, fmt.Errorf("cert and key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
