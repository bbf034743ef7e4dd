// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
)

// callDeadline bounds every call but the long poll.
const callDeadline = 15 * time.Second

// maxAnswer bounds what is read of an answer: a task carries small files at most.
const maxAnswer = 8 << 20

// PinnedClient returns an HTTP/1.1 client that trusts exactly one key: the one
// whose SubjectPublicKeyInfo has the given SHA-256, in base64 (RFC 7469, section
// 2.4). Names, chains and validity periods do not matter, so a node whose clock
// is wrong still gets through. The handshake proves that the peer has the key.
func PinnedClient(pin string) (*http.Client, error) { return PinnedClientOn(pin, nil) }

// PinnedClientOn is PinnedClient on connections that dial makes; nil: those of
// this very node.
func PinnedClientOn(pin string, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (*http.Client, error) {
	want, err := base64.StdEncoding.DecodeString(pin)
	if err != nil || len(want) != sha256.Size {
		return nil, errkind.New(errkind.Invalid, "pin %q of the controller is not the base64 form of a SHA-256", pin).
			Do("Netboot the node again; the boot file that it was given is damaged.")
	}
	if dial == nil {
		dial = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         dial,
			TLSHandshakeTimeout: 10 * time.Second, // emulated nodes are slow at it
			MaxIdleConnsPerHost: 2,
			IdleConnTimeout:     90 * time.Second,
			Protocols:           &protocols,
			TLSClientConfig: &tls.Config{
				MinVersion:         tls.VersionTLS13,
				InsecureSkipVerify: true, // VerifyConnection below is stricter: one key, no authority
				VerifyConnection:   func(c tls.ConnectionState) error { return checkPin(c, want) },
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// checkPin compares the key of the peer's own certificate with the pin.
func checkPin(c tls.ConnectionState, want []byte) error {
	if len(c.PeerCertificates) == 0 {
		return errkind.New(errkind.Auth, "the controller showed no certificate")
	}
	got := sha256.Sum256(c.PeerCertificates[0].RawSubjectPublicKeyInfo)
	if subtle.ConstantTimeCompare(got[:], want) != 1 {
		return errkind.New(errkind.Auth, "the controller's key is not the pinned one: it has %s", base64.StdEncoding.EncodeToString(got[:])).
			Do("Netboot the node again if the controller has a new key; else something stands between the node and its controller.")
	}
	return nil
}

// caller makes the calls of the agent API. It is safe for concurrent use.
type caller struct {
	client *http.Client
	base   string
	token  string
}

// errUnasked says that the controller did not ask for a result, or not yet: it was
// started again, and asks for the task before long.
var errUnasked = errkind.New(errkind.Refused, "the controller did not ask for this result")

// post sends a JSON value and reads a JSON answer into answer, when not nil.
func (c caller) post(ctx context.Context, path string, value, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	body, err := json.Marshal(value)
	if err != nil {
		return errkind.New(errkind.Internal, "encode %T: %w", value, err)
	}
	b, status, err := c.do(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err == nil && status == http.StatusAccepted {
		return errUnasked
	}
	if err != nil || answer == nil {
		return err
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return errkind.New(errkind.Internal, "answer to %s: %w", path, err)
	}
	return nil
}

// poll asks for the next task and lets the controller hold the call for wait.
func (c caller) poll(ctx context.Context, wait time.Duration) (*wire.Task, error) {
	b, status, err := c.do(ctx, http.MethodGet, wire.PathTask+"?wait="+url.QueryEscape(wait.String()), nil)
	if err != nil || status == http.StatusNoContent {
		return nil, err
	}
	var task wire.Task
	if err := json.Unmarshal(b, &task); err != nil {
		return nil, errkind.New(errkind.Internal, "task: %w", err)
	}
	if task.Key == "" {
		return nil, errkind.New(errkind.Internal, "task of kind %q has no key", task.Kind)
	}
	return &task, nil
}

// do makes one call and sorts its failures by kind.
func (c caller) do(ctx context.Context, method, path string, body io.Reader) (answer []byte, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.base, "/")+path, body)
	if err != nil {
		return nil, 0, errkind.New(errkind.Internal, "%w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, 0, classify(err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, 0, classify(err)
	}
	if len(answer) > maxAnswer {
		return nil, 0, errkind.New(errkind.Internal, "answer to %s has more than %d bytes", path, maxAnswer)
	}
	return answer, resp.StatusCode, statusError(resp.StatusCode, answer)
}

// classify gives an error of net/http its kind.
func classify(err error) error {
	if kinded, ok := errors.AsType[*errkind.Error](err); ok {
		return kinded // the pin; the text around it is only "Get https://..."
	}
	if errors.Is(err, context.Canceled) {
		return errkind.New(errkind.Interrupted, "%w", err)
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return errkind.New(errkind.Timeout, "%w", err)
	}
	return errkind.New(errkind.Unreachable, "%w", err)
}

// statusError turns a status that is not a success into an error of its kind.
func statusError(status int, answer []byte) error {
	text := fmt.Sprintf("controller answers %d %s: %s", status, http.StatusText(status), wire.FirstLine(answer))
	switch {
	case status == http.StatusOK, status == http.StatusNoContent, status == http.StatusAccepted:
		return nil
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return errkind.New(errkind.Auth, "%s", text).Do("The boot attempt has ended; run `ironrail why` for this node, then netboot it again.")
	case status == http.StatusUpgradeRequired, status == http.StatusHTTPVersionNotSupported:
		return errkind.New(errkind.Unsupported, "%s", text).Do("Build the ramdisk and the controller from the same ironrail.")
	case status >= 500:
		return errkind.New(errkind.Unreachable, "%s", text)
	}
	return errkind.New(errkind.Refused, "%s", text)
}
