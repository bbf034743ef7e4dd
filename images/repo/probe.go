// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"

	"github.com/ironrail/ironrail/images/internal/signature"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Bounds of one request of a probe.
const (
	probeLimit = 15 * time.Second
	probeSize  = 16 << 20 // bytes of a Release file
)

// Probe asks a source for its signed index, and compares it with the key, the components
// and the architecture that a build needs: what apt would refuse later. A source without
// a key of its own is signed by one of the image's, which is not looked at. It downloads
// no package, and takes half a minute at most.
func (s Source) Probe(ctx context.Context, arch string) error {
	if err := s.check(); err != nil {
		return errkind.New(errkind.Refused, "%w", err).Do("Correct its url, suite and components.")
	}
	release, signed, err := s.release(ctx)
	if err != nil {
		return err
	}
	if len(s.Key) > 0 {
		if err := signed(s.Key); err != nil {
			return errkind.New(errkind.Corrupt, "its key did not sign it: %w", err).
				Do("Give the key that signs this repository, as its vendor publishes it, in ASCII armor.")
		}
	}
	return s.fits(string(release), arch, time.Now())
}

// base is the folder of the source's index.
func (s Source) base() string {
	root := strings.TrimSuffix(s.URL, "/") + "/"
	if strings.HasSuffix(s.Suite, "/") {
		return root + strings.TrimPrefix(strings.TrimPrefix(s.Suite, "./"), "/")
	}
	return root + "dists/" + s.Suite + "/"
}

// release fetches the index, and returns with it how to look who signed it: inline, or
// in a file beside it.
func (s Source) release(ctx context.Context) (release []byte, signed func(armored []byte) error, err error) {
	inline, err := fetchFile(ctx, s.base()+inRelease)
	if err == nil {
		block := signature.DecodeText(inline)
		if block == nil {
			return nil, nil, errkind.New(errkind.Invalid, "%s is no signed index of a repository", s.base()+inRelease).
				Do("Look whether something between here and the repository answers in its place, such as a proxy that asks for a login.")
		}
		return block.Plaintext, func(armored []byte) error {
			keys, err := signature.ReadKeys(armored)
			if err == nil {
				_, err = block.VerifySignature(keys, signingConfig())
			}
			return err
		}, nil
	}
	if errkind.Of(err) != errkind.NotFound {
		return nil, nil, err
	}
	release, rerr := fetchFile(ctx, s.base()+"Release")
	if rerr != nil {
		return nil, nil, err // about InRelease, which is what a repository should have
	}
	return release, func(armored []byte) error {
		detached, err := fetchFile(ctx, s.base()+"Release.gpg")
		if err != nil {
			return err
		}
		keys, err := signature.ReadKeys(armored)
		if err != nil {
			return err
		}
		check := openpgp.CheckDetachedSignature
		if bytes.HasPrefix(detached, []byte("-----BEGIN")) {
			check = openpgp.CheckArmoredDetachedSignature
		}
		_, err = check(keys, bytes.NewReader(release), bytes.NewReader(detached), signingConfig())
		return err
	}, nil
}

// fits compares an index with what is needed of it.
func (s Source) fits(release, arch string, now time.Time) error {
	arch = cmp.Or(arch, defaultArch)
	field := func(name string) []string { return strings.Fields(stanza{text: release}.field(name)) }
	if have := field("Architectures"); len(have) > 0 && !slices.Contains(have, arch) && !slices.Contains(have, "all") {
		return errkind.New(errkind.NotFound, "it has packages for %s, and none for %s", strings.Join(have, ", "), arch).Do(fmt.Sprintf("Name the repository for %s.", arch))
	}
	if have := field("Components"); len(have) > 0 {
		for _, c := range s.Components {
			if !slices.ContainsFunc(have, func(h string) bool { return h == c || strings.HasSuffix(h, "/"+c) }) {
				return errkind.New(errkind.NotFound, "it has no component %q; it has %s", c, strings.Join(have, ", ")).Do("Correct its components.")
			}
		}
	}
	until, err := time.Parse(time.RFC1123, strings.Replace(stanza{text: release}.field("Valid-Until"), "UTC", "GMT", 1))
	if err == nil && now.After(until) {
		return errkind.New(errkind.Invalid, "its index was valid until %s only, so that apt refuses it", until.Format(time.DateOnly)).
			Do("Name a mirror that is kept up to date, or set this controller's clock.")
	}
	return nil
}

// fetchFile reads a file of a repository, once more where the first request fails on its
// way. An error of kind NotFound means that the repository answers and has no such file.
func fetchFile(ctx context.Context, at string) ([]byte, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, errkind.New(errkind.Refused, "%w", err).Do("Correct its url.")
	}
	if u.Scheme == "file" || u.Scheme == "copy" {
		b, err := os.ReadFile(u.Path)
		if err != nil {
			return nil, errkind.New(errkind.NotFound, "%w", err).Do("Correct its url, or bring the repository there.")
		}
		return b, nil
	}
	var b []byte
	for range 2 {
		if b, err = request(ctx, at); err == nil || errkind.Of(err) == errkind.NotFound || ctx.Err() != nil {
			break
		}
	}
	return b, err
}

// request is one request over HTTP, with a deadline. A proxy is taken from the
// environment, as apt takes it.
func request(ctx context.Context, at string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, errkind.New(errkind.Refused, "%w", err).Do("Correct its url.")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, errkind.New(errkind.Unreachable, "it does not answer: %w", unwrapped(err)).
			Do("Look at the network of this controller, at http_proxy in its environment, and at the name of the repository.")
	}
	defer res.Body.Close()
	if res.StatusCode >= http.StatusInternalServerError {
		return nil, errkind.New(errkind.Unreachable, "%s: it answers %s", at, res.Status).Do("Try again later, or name another mirror.")
	}
	if res.StatusCode != http.StatusOK {
		return nil, errkind.New(errkind.NotFound, "%s: it answers %s", at, res.Status).Do("Correct its url and suite: the index of the repository is not there.")
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, probeSize))
	if err != nil {
		return nil, errkind.New(errkind.Unreachable, "%s: %w", at, err).Do("Try again later, or name another mirror.")
	}
	return b, nil
}

// unwrapped is an error of a request without its method and URL.
func unwrapped(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
