package registry

import (
	"io"
	"os"
	"slices"
	"strings"

	ecr "github.com/awslabs/amazon-ecr-credential-helper/ecr-login"
	acr "github.com/chrismellard/docker-credential-acr-env/pkg/credhelper"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/authn/github"
	"github.com/google/go-containerregistry/pkg/v1/google"
)

// ambient gives what knows the credentials of the environment for a registry:
// each vendor's only for its own hosts. It gives nil for all others.
func ambient(host string) authn.Keychain {
	switch {
	case host == "ghcr.io":
		return github.Keychain
	case host == "gcr.io" || strings.HasSuffix(host, ".gcr.io") || strings.HasSuffix(host, ".pkg.dev"):
		return google.Keychain
	case isECR(host):
		return authn.NewKeychainFromHelper(ecr.NewECRHelper(ecr.WithLogger(io.Discard)))
	case strings.HasSuffix(host, ".azurecr.io") || strings.HasSuffix(host, ".azurecr.cn") || strings.HasSuffix(host, ".azurecr.us"):
		return authn.NewKeychainFromHelper(acr.NewACRCredentialsHelper())
	}
	return nil
}

// isECR tells whether a host is a registry of AWS. That of public images is asked
// with credentials only where there are some.
// https://docs.aws.amazon.com/AmazonECR/latest/userguide/Registries.html
func isECR(host string) bool {
	if host == "public.ecr.aws" {
		return slices.ContainsFunc([]string{"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"},
			func(key string) bool { return os.Getenv(key) != "" })
	}
	return strings.Contains(host, ".dkr.ecr.") && (strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix(host, ".amazonaws.com.cn"))
}
