// SPDX-License-Identifier: Apache-2.0

// Package rpc is a service of a site's own that switches the power of nodes: what
// bmclib's provider rpc talks to. Its messages are written down here a second time,
// from that provider's documents, so that a mistake of the library shows.
package rpc

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/redfish"
)

// Node is a node that the service switches.
type Node struct {
	Chassis *chassis.Chassis
	Secret  string // with which requests about it are signed
}

// Options describe one service.
type Options struct {
	Address netip.Addr                     // in its certificate
	Now     func() time.Time               // nil: time.Now
	Node    func(host string) (Node, bool) // the node of a BMC's address
}

// Limits of the service's own.
const (
	idleTimeout = time.Minute
	maxBody     = 64 << 10
)

// signatureHeader carries "sha256=" and the HMAC of the body in hex.
const signatureHeader = "X-BMCLIB-Signature-256"

// The codes of errors, in the answer's error.
const (
	codeUnknown   = 404 // no such node, or method
	codeSignature = 401
	codeParams    = 422
	codeState     = 409 // the power does not change so now
	codeSilent    = 504 // the node's own controller does not answer
)

// request is one message.
type request struct {
	ID     int64  `json:"id"`
	Host   string `json:"host"`
	Method string `json:"method"`
	Params struct {
		State      string `json:"state"`
		Device     string `json:"device"`
		Persistent bool   `json:"persistent"`
		EFIBoot    bool   `json:"efiBoot"`
	} `json:"params"`
}

// failure is the error of an answer.
type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// answer is what comes back.
type answer struct {
	ID     int64    `json:"id"`
	Host   string   `json:"host"`
	Result any      `json:"result,omitempty"`
	Error  *failure `json:"error,omitempty"`
}

// Serve answers on ln, TLS inside, until ctx ends; then it closes ln and every
// connection and returns nil.
func Serve(ctx context.Context, ln net.Listener, o Options) error {
	now := o.Now
	if now == nil {
		now = time.Now
	}
	cert, err := redfish.SelfSigned(now(), "rpc", o.Address)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: http.HandlerFunc(o.serve), ReadHeaderTimeout: idleTimeout, ReadTimeout: idleTimeout, WriteTimeout: idleTimeout, IdleTimeout: idleTimeout,
		ErrorLog: log.New(io.Discard, "", 0), BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	err = srv.Serve(tls.NewListener(ln, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{*cert}}))
	_ = srv.Close()
	if ctx.Err() != nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// serve answers one request.
func (o Options) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var q request
	if err != nil || r.Method != http.MethodPost || json.Unmarshal(body, &q) != nil {
		http.Error(w, "not a message of bmclib's rpc", http.StatusBadRequest)
		return
	}
	a := answer{ID: q.ID, Host: q.Host}
	status := http.StatusOK
	switch n, ok := o.Node(q.Host); {
	case !ok:
		a.Error = &failure{codeUnknown, "no node has this BMC"}
	case !isSigned(r.Header.Get(signatureHeader), body, n.Secret):
		status, a.Error = http.StatusUnauthorized, &failure{codeSignature, "the signature is wrong"}
	case !n.Chassis.Live():
		status, a.Error = http.StatusGatewayTimeout, &failure{codeSilent, "the node's controller does not answer"}
	default:
		a.Result, a.Error = runRequest(n.Chassis, q)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a)
}

// isSigned checks the HMAC of a body.
func isSigned(header string, body []byte, secret string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write(body)
	got, err := hex.DecodeString(strings.TrimPrefix(header, "sha256="))
	return err == nil && secret != "" && hmac.Equal(got, mac.Sum(nil))
}

// presses are the power states that can be asked for.
var presses = map[string]chassis.Action{"on": chassis.PressOn, "off": chassis.ForceOff, "soft": chassis.GracefulShutdown, "reset": chassis.ForceRestart, "cycle": chassis.PowerCycle}

// devices are the boot devices.
var devices = map[string]chassis.Target{"none": chassis.BootNone, "pxe": chassis.BootPXE, "disk": chassis.BootHDD, "uefi_http": chassis.BootUEFIHTTP}

// runRequest carries a message out.
func runRequest(c *chassis.Chassis, q request) (any, *failure) {
	switch q.Method {
	case "ping":
		return "pong", nil
	case "getPowerState":
		return map[chassis.Power]string{chassis.On: "on", chassis.Off: "off"}[c.Power()], nil
	case "setPowerState":
		action, ok := presses[q.Params.State]
		if !ok {
			return nil, &failure{codeParams, "unknown power state"}
		}
		if err := c.Press(action); err != nil {
			return nil, &failure{codeState, err.Error()}
		}
		return "ok", nil
	case "setBootDevice":
		return setBoot(c, q)
	}
	return nil, &failure{codeUnknown, "unknown method " + cmp.Or(q.Method, "(none)")}
}

// setBoot sets the boot device.
func setBoot(c *chassis.Chassis, q request) (any, *failure) {
	target, ok := devices[q.Params.Device]
	if !ok {
		return nil, &failure{codeParams, "unknown boot device"}
	}
	set := chassis.Override{Enabled: "Once", Target: target, UEFI: q.Params.EFIBoot}
	if q.Params.Persistent {
		set.Enabled = "Continuous"
	}
	if err := c.SetOverride(set); err != nil {
		return nil, &failure{codeParams, err.Error()}
	}
	return "ok", nil
}
