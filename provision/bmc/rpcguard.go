// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/bmc-toolbox/bmclib/v2/providers/rpc"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/bmc/redfish"
)

// rpcGuard stands between bmclib's provider rpc and the network, because the
// provider itself
//   - has no deadline for an answer, and follows redirects, with the body and its
//     signature, to wherever an answer points;
//   - refuses answers without a Content-Length, as Go's own servers give them from
//     2 KiB on;
//   - makes one error without a type of every refusal, with the service's words in
//     it as they came.
type rpcGuard struct {
	next    http.RoundTripper
	timeout time.Duration
}

// rpcAnswerMost bounds an answer, bytes; it has four fields.
const rpcAnswerMost = 64 << 10

// actionRPC is what to do about a signature that the service does not take.
const actionRPC = "Make password of the bmc block the secret with which the service checks signatures (HMAC-SHA256); it is not tried again by itself."

// RoundTrip implements http.RoundTripper. The answer that it returns is whole, and
// one that the service meant as good.
func (g rpcGuard) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), g.timeout)
	defer cancel()
	lost := func(err error) error { return redfish.Classify(req.Context(), err, "the site's rpc service (HTTPS)") }
	resp, err := g.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, lost(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, rpcAnswerMost+1))
	if err != nil {
		return nil, lost(err)
	}
	if err := judgeRPC(resp.StatusCode, body); err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}

// judgeRPC returns the error that an answer is, or nil. What says neither yes nor no
// is of kind Timeout, like an answer that got lost: what became of the request must
// be read back.
func judgeRPC(status int, body []byte) error {
	var answer rpc.ResponsePayload
	malformed := json.Unmarshal(body, &answer) != nil
	switch {
	case len(body) > rpcAnswerMost:
		return errkind.New(errkind.Timeout, "the answer is longer than %d KiB", rpcAnswerMost>>10)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return errkind.New(errkind.Auth, "%w: the service does not take the signature (%d)", errCredential, status).Do(actionRPC)
	case status >= http.StatusInternalServerError:
		return errkind.New(errkind.Timeout, "the service answers with status %d%s", status, words(answer.Error)).Do("Read the log of the service at endpoint of the bmc block.")
	case answer.Error != nil && answer.Error.Code != 0:
		return errkind.New(errkind.Refused, "the service refuses%s", words(answer.Error)).
			Do("Read the log of the service at endpoint of the bmc block.")
	case status != http.StatusOK:
		return errkind.New(errkind.Refused, "the service answers with status %d", status).
			Do("Compare endpoint of the bmc block with the service's own documents, and read its log.")
	case malformed:
		return errkind.New(errkind.Timeout, "the answer of the service is not of bmclib's rpc").Do("Compare endpoint of the bmc block with the service's own documents.")
	}
	return nil
}

// words are what the service says of an error, after a colon.
func words(e *rpc.ResponseError) string {
	if e == nil {
		return ""
	}
	return fmt.Sprintf(": %s (code %d)", redfish.OneLine(e.Message), e.Code)
}
