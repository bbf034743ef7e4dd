// SPDX-License-Identifier: Apache-2.0

package rack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual"
)

// Client talks to the rack of a site's folder. Every call ends within a minute. Errors are
// of kind unreachable when no rack runs, and else of the kind that the rack gave them. It
// is safe for concurrent use.
type Client struct {
	dir  string // the site's
	http *http.Client
}

// NewClient returns a client of the rack in a site's folder. It connects when it is used.
func NewClient(dir string) *Client {
	folder := filepath.Join(dir, Folder)
	return &Client{dir: dir, http: &http.Client{Timeout: callLimit + 5*time.Second, Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return control.DialSocket(ctx, folder) },
		DisableKeepAlives: true, // a command asks now and then
	}}}
}

// Info asks what the rack is.
func (c *Client) Info(ctx context.Context) (i Info, err error) {
	return i, c.call(ctx, "info", nothing{}, &i)
}

// Endpoints asks where its devices answer.
func (c *Client) Endpoints(ctx context.Context) (list []virtual.Endpoint, err error) {
	return list, c.call(ctx, "endpoints", nothing{}, &list)
}

// Replace has a technician put another chassis of the same hardware block in the place of
// a node: other serial number, other MACs, blank disks, switched off. It returns its label.
func (c *Client) Replace(ctx context.Context, node string) (l Label, err error) {
	return l, c.call(ctx, "replace", nodesCall{Node: node}, &l)
}

// Exchange has a technician swap the chassis of two nodes; both are switched off.
func (c *Client) Exchange(ctx context.Context, node, with string) error {
	return c.call(ctx, "exchange", nodesCall{Node: node, With: with}, nil)
}

// Plant plants a fault, written as --fault has it.
func (c *Client) Plant(ctx context.Context, fault string) error {
	return c.call(ctx, "fault", faultCall{Fault: fault}, nil)
}

// Lift takes a fault away again, of the kinds that can be.
func (c *Client) Lift(ctx context.Context, fault string) error {
	return c.call(ctx, "fault", faultCall{Fault: fault, Lift: true}, nil)
}

// Open opens a site on the rack: everything outside of this process is the rack's, images
// and packages are simulated and in the state folder when there are none, and hooks only
// take their time. Digests that the files pinned when the rack was started are taken off
// the inventory, since nobody can make other bytes of the same digest.
func (c *Client) Open(ctx context.Context, inv *inventory.Inventory, look bool) (*provision.Site, error) {
	info, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	if info.Site != inv.Site.Name {
		return nil, errkind.New(errkind.Refused, "the virtual rack in %s is that of site %s, and the files are those of site %s", Folder, info.Site, inv.Site.Name).
			Do("Start `ironrail rack` anew.")
	}
	for _, i := range inv.Images {
		if pin := info.Pins[i.Name]; pin != "" && pin == i.Digest {
			i.Digest = ""
		}
	}
	if err := virtual.PinConsoles(inv, info.Seed); err != nil {
		return nil, err
	}
	o, err := rehearsal.WriteStandIns(filepath.Join(c.dir, Folder, standInFolder))
	if err != nil {
		return nil, err
	}
	o.Virtual, o.Look, o.State = true, look, StateFolder(c.dir)
	o.Network = network.JoinLoopback(info.Places).At(info.Controller)
	o.Secrets = virtual.SecretsOf(inv, info.Seed)
	o.Local, o.ClusterCA = c.runProgram, c.clusterCA
	o.Subnets = func(fabric string) infiniband.Host { return subnetHost{c, fabric} }
	fast := clock.Fast{Start: info.Started, Speed: info.Speed}
	o.Hooks = func(ctx context.Context, _, _ []string, _ string, _ []byte, _ io.Writer) error {
		return fast.Sleep(ctx, rehearsal.HookTime)
	}
	s, err := provision.Open(inv, o)
	if err == nil && !look {
		err = rehearsal.Simulate(ctx, s, info.Seed)
	}
	return s, err
}

// OpenRecords opens a site for what the state of its rack says, while no rack runs: nothing
// is reached.
func OpenRecords(inv *inventory.Inventory, dir string) (*provision.Site, error) {
	return provision.Open(inv, provision.Options{Virtual: true, Look: true, State: StateFolder(dir), Network: network.JoinLoopback(nil).At(netip.IPv6Loopback()), Secrets: virtual.Secrets{}})
}

// runProgram runs a program of the scheduler on the rack's controller.
func (c *Client) runProgram(ctx context.Context, argv ...string) ([]byte, error) {
	var a programAnswer
	err := c.call(ctx, "program", programCall{argv}, &a)
	if o, ok := errors.AsType[outputError](err); ok {
		return o.output, err
	}
	return a.Output, err
}

// clusterCA is the CA of an API server on the rack; "" where there is none.
func (c *Client) clusterCA(endpoint string) string {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	var a clusterAnswer
	if err := c.call(ctx, "cluster", clusterCall{endpoint}, &a); err != nil {
		return "" // the next call of the API server fails, and says why
	}
	return a.CA
}

// call asks the rack.
func (c *Client) call(ctx context.Context, what string, q, a any) error {
	b, err := json.Marshal(q)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://rack/"+what, bytes.NewReader(b))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(err)
	}
	defer resp.Body.Close()
	if b, err = io.ReadAll(io.LimitReader(resp.Body, maxBody)); err != nil {
		return errkind.New(errkind.Unreachable, "virtual rack: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		if a == nil {
			return nil
		}
		return json.Unmarshal(b, a)
	}
	var f failure
	if err := json.Unmarshal(b, &f); err != nil {
		return fmt.Errorf("virtual rack: %s: %s", what, resp.Status)
	}
	cause := errors.New(f.Error)
	if f.Absent {
		cause = absent{f.Error}
	}
	out := error(&errkind.Error{Kind: f.Kind, Err: cause, Action: f.Action})
	if f.Output != nil {
		out = outputError{out, f.Output}
	}
	return out
}

// unreachable says why the rack does not answer.
func (c *Client) unreachable(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without an address that means nothing here
	}
	if errkind.Of(err) == errkind.Unreachable || errors.Is(err, fs.ErrNotExist) {
		return errkind.New(errkind.Unreachable, "no virtual rack runs in %s", filepath.Join(c.dir, Folder)).
			Do("Start one in another terminal: `ironrail rack`.")
	}
	return errkind.New(errkind.Unreachable, "virtual rack: %w", err)
}

// absent is the error of a file that is not there.
type absent struct{ text string }

// Error is what the rack said.
func (a absent) Error() string { return a.text }

// Is makes it fs.ErrNotExist.
func (a absent) Is(target error) bool { return target == fs.ErrNotExist }

// subnetHost is the controller's host on an InfiniBand fabric of the rack. It implements
// infiniband.Host.
type subnetHost struct {
	c      *Client
	fabric string
}

func (h subnetHost) ask(ctx context.Context, what string, q subnetCall) (a subnetAnswer, err error) {
	q.Fabric = h.fabric
	return a, h.c.call(ctx, "subnet/"+what, q, &a)
}

// Run runs a program to its end.
func (h subnetHost) Run(ctx context.Context, argv ...string) (onnode.Output, error) {
	a, err := h.ask(ctx, "run", subnetCall{Argv: argv})
	return a.Output, err
}

// Read returns a file.
func (h subnetHost) Read(ctx context.Context, path string) ([]byte, error) {
	a, err := h.ask(ctx, "read", subnetCall{Path: path})
	return a.Text, err
}

// Write replaces a file.
func (h subnetHost) Write(ctx context.Context, path string, content []byte) error {
	_, err := h.ask(ctx, "write", subnetCall{Path: path, Content: content})
	return err
}

// Reload makes the subnet manager read its files again.
func (h subnetHost) Reload(ctx context.Context, restart bool) error {
	_, err := h.ask(ctx, "reload", subnetCall{Restart: restart})
	return err
}

// Log returns what was logged from an offset on, and the offset of its end.
func (h subnetHost) Log(ctx context.Context, from int64) ([]byte, int64, error) {
	a, err := h.ask(ctx, "log", subnetCall{From: from})
	return a.Text, a.End, err
}
