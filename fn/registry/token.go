package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// A token opens one repository for a while.
type token struct {
	value   string
	expires time.Time // zero where that is not known
}

// early is how long before its end a token is not used any more.
const early = 10 * time.Second

func (t token) usable(stale string) bool {
	return t.value != "" && t.value != stale && (t.expires.IsZero() || time.Until(t.expires) > early)
}

// renew makes sure that the repository has a token, and not the stale one. The
// caller holds the lock of the repository, so that one request is made for all
// who wait.
func (p *place) renew(ctx context.Context, repo *repository, want challenge, stale string) error {
	if repo.token.usable(stale) {
		return nil
	}
	auth, err := p.credentials(ctx)
	if err != nil {
		return err
	}
	if auth.RegistryToken != "" {
		repo.token = token{value: auth.RegistryToken}
		return nil
	}
	t, err := p.exchange(ctx, want, auth)
	if isRefusal(err) && auth != (authn.AuthConfig{}) {
		// The image may be public, and the credentials out of date.
		if public, errPublic := p.exchange(ctx, want, authn.AuthConfig{}); errPublic == nil {
			p.client.warn(p.name + ": refuses the credentials for " + p.repo + ", going on without them")
			t, err = public, nil
		}
	}
	repo.token = t
	return err
}

// isRefusal tells whether a token service did not take the credentials.
func isRefusal(err error) bool {
	var te *transport.Error
	return errors.As(err, &te) && (te.StatusCode == http.StatusUnauthorized || te.StatusCode == http.StatusForbidden)
}

// maxToken bounds what is read of the answer of a token service.
const maxToken = 1 << 20

// exchange asks the token service for a token.
// https://distribution.github.io/distribution/spec/auth/token/
func (p *place) exchange(ctx context.Context, want challenge, auth authn.AuthConfig) (token, error) {
	req, err := p.tokenRequest(ctx, want, auth)
	if err != nil {
		return token{}, err
	}
	resp, err := p.send(req)
	if err != nil {
		return token{}, err
	}
	defer drain(resp)
	if err := transport.CheckError(resp, http.StatusOK); err != nil {
		return token{}, err
	}
	var got struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxToken)).Decode(&got); err != nil {
		return token{}, fmt.Errorf("the answer of the token service %s cannot be read: %w", req.URL.Host, asCause(err))
	}
	t := token{value: got.Token}
	if t.value == "" {
		t.value = got.AccessToken
	}
	if t.value == "" {
		return token{}, fmt.Errorf("the token service %s gives no token", req.URL.Host)
	}
	if got.ExpiresIn > 0 {
		t.expires = time.Now().Add(max(time.Duration(got.ExpiresIn)*time.Second, early+time.Second))
	}
	return t, nil
}

// tokenRequest gives a GET with user and password, or the POST of OAuth2 where
// an identity token is at hand.
// https://distribution.github.io/distribution/spec/auth/oauth/
func (p *place) tokenRequest(ctx context.Context, want challenge, auth authn.AuthConfig) (*http.Request, error) {
	realm, err := p.realm(want.parameters["realm"])
	if err != nil {
		return nil, err
	}
	form := url.Values{"scope": {"repository:" + p.repo + ":pull"}}
	if s := want.parameters["service"]; s != "" {
		form.Set("service", s)
	}
	if auth.IdentityToken != "" {
		form.Set("grant_type", "refresh_token")
		form.Set("refresh_token", auth.IdentityToken)
		form.Set("client_id", "belay")
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, realm.String(), strings.NewReader(form.Encode()))
		if err == nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		return req, err
	}
	query := realm.Query()
	for k, v := range form {
		query[k] = v
	}
	realm.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, realm.String(), nil)
	if err == nil && (auth.Username != "" || auth.Password != "") {
		req.SetBasicAuth(auth.Username, auth.Password)
	}
	return req, err
}

// realm reads the address of the token service. It is refused where a registry
// could make belay call what only this machine reaches.
func (p *place) realm(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "":
		return nil, fmt.Errorf("%s names no token service", p.name)
	case u.Scheme != "https" && (u.Scheme != "http" || p.scheme != "http"):
		return nil, fmt.Errorf("the token service of %s is not reached over TLS: %w", p.name, &forbidden{u.Host})
	case u.Host != p.name && isPrivate(u.Hostname()) && !isPrivate(hostname(p.name)) && !p.client.guard.names(u.Host):
		return nil, fmt.Errorf("the token service of %s: %w", p.name, &forbidden{u.Host})
	}
	return u, nil
}
