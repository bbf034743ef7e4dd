// SPDX-License-Identifier: Apache-2.0

// Package notify sends what happens in a run to those whom the site's `notify` blocks
// name: a webhook, or Alertmanager. It reads the events of the run and never holds it up:
// what a receiver does not take in time is counted and left out.
package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/internal/tlstrust"
	"github.com/ironrail/ironrail/inventory"
)

const (
	queueSize = 1000 // notices that wait for one receiver
	batchSize = 100  // notices in one message
	maxAnswer = 64 << 10
	// maxPause bounds what a receiver may ask for by Retry-After.
	maxPause = 30 * time.Second
)

// alertPath is the API of Alertmanager below its URL.
const alertPath = "/api/v2/alerts"

// Options are times; the zero value has those of production.
type Options struct {
	Gather time.Duration   // a message waits for more notices; default 1 s
	Pauses []time.Duration // before each further try; default 1, 4 and 15 s
	Finish time.Duration   // what is left may take after the end of the run; default 20 s
}

func (o Options) withDefaults() Options {
	if o.Gather == 0 {
		o.Gather = time.Second
	}
	if o.Pauses == nil {
		o.Pauses = []time.Duration{time.Second, 4 * time.Second, 15 * time.Second}
	}
	if o.Finish == 0 {
		o.Finish = 20 * time.Second
	}
	return o
}

// Notifier sends the notices of one run.
type Notifier struct {
	site    string
	targets []*target
	options Options
	say     func(string)
}

// target is one receiver with the secrets for it.
type target struct {
	*inventory.Notify
	url     string
	headers http.Header
	client  *http.Client
	queue   chan Notice

	mu      sync.Mutex // guards what follows
	dropped int        // notices that were not delivered, of which no message has said so
	lost    int        // all that were not delivered
	cause   string     // why the last of them were not
}

// New makes ready to send. resolve finds secrets: one that cannot be found is an error
// now, before anything is done. say takes what went wrong later, without any secret; it
// may be called concurrently.
func New(inv *inventory.Inventory, resolve func(secret.Ref) (secret.Value, error), say func(string), o Options) (*Notifier, error) {
	n := &Notifier{site: inv.Site.Name, options: o.withDefaults(), say: say}
	for _, b := range inv.Notifies {
		t, err := newTarget(b, resolve)
		if err != nil {
			return nil, fmt.Errorf("notify %s: %w", b.Name, err)
		}
		if b.URL.Secret != "" && inventory.SentInClear(t.url) { // check sees those in the site's files
			say(fmt.Sprintf("warning: notify %s: the URL, which is a secret, goes over http: everybody on the way reads it. Use https.", b.Name))
		}
		n.targets = append(n.targets, t)
	}
	return n, nil
}

func newTarget(b *inventory.Notify, resolve func(secret.Ref) (secret.Value, error)) (*target, error) {
	t := &target{Notify: b, url: b.URL.Text, headers: http.Header{"Content-Type": {"application/json"}, "User-Agent": {"ironrail"}}, queue: make(chan Notice, queueSize)}
	if b.URL.Secret != "" {
		v, err := resolve(b.URL.Secret)
		if err != nil {
			return nil, err
		}
		t.url = strings.TrimSpace(v.Reveal())
		if why := inventory.WrongNotifyURL(t.url); why != "" {
			return nil, errkind.New(errkind.Invalid, "the URL that %s holds %s", b.URL.Secret, why)
		}
	}
	headers := slices.Clone(b.Headers)
	if b.Token != "" {
		headers = append(headers, inventory.NotifyHeader{Name: "Authorization", Value: b.Token})
	}
	for _, h := range headers {
		v, err := resolve(h.Value)
		if err != nil {
			return nil, err
		}
		text := strings.TrimSpace(v.Reveal())
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return nil, errkind.New(errkind.Invalid, "the value of header %s has control characters", h.Name)
		}
		if h.Value == b.Token && h.Name == "Authorization" {
			text = "Bearer " + text
		}
		t.headers.Set(h.Name, text)
	}
	if b.Kind == "alertmanager" {
		at, err := url.Parse(t.url)
		if err != nil {
			return nil, errkind.New(errkind.Invalid, "its URL is none")
		}
		t.url = at.JoinPath(alertPath).String()
	}
	client, err := tlstrust.NewClient(b.CA, b.Timeout)
	t.client = client
	return t, err
}

// Empty reports whether nobody is to be notified.
func (n *Notifier) Empty() bool { return len(n.targets) == 0 }

// Follow sends what next yields until its end; then what is left has a short time. It is
// called once, and returns when nothing is sent any more.
func (n *Notifier) Follow(ctx context.Context, next func(context.Context) (event.Event, error)) {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	for _, t := range n.targets {
		wg.Go(func() { n.send(sending, t) })
	}
	r := reader{map[string]int{}}
	for {
		e, err := next(ctx)
		if err != nil { // the end of the stream, or of ctx
			break
		}
		if notice, on, ok := r.read(e); ok {
			n.spread(notice, on)
		}
	}
	for _, t := range n.targets {
		close(t.queue)
	}
	late := time.AfterFunc(n.options.Finish, stop)
	defer late.Stop()
	wg.Wait()
	for _, t := range n.targets {
		if t.lost > 0 { // alone now: nothing is sent any more
			n.say(fmt.Sprintf("warning: notify %s: %d notices were not delivered: %s", t.Name, t.lost, t.cause))
		}
	}
}

// spread gives a notice to all who asked for it and have room.
func (n *Notifier) spread(notice Notice, on string) {
	for _, t := range n.targets {
		if !slices.Contains(t.On, on) {
			continue
		}
		select {
		case t.queue <- notice:
		default:
			t.drop(1, "the receiver is too slow")
		}
	}
}

func (t *target) drop(count int, cause string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropped, t.lost, t.cause = t.dropped+count, t.lost+count, cause
}

// putBack counts again what a message would have said that was not delivered.
func (t *target) putBack(dropped int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropped += dropped
}

func (t *target) takeDropped() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	count := t.dropped
	t.dropped = 0
	return count
}

// send sends the notices of one receiver, message by message, until its queue is closed.
func (n *Notifier) send(ctx context.Context, t *target) {
	defer t.client.CloseIdleConnections()
	for first := range t.queue {
		list := n.gather(ctx, t, first)
		dropped := t.takeDropped()
		if err := n.deliver(ctx, t, list, dropped); err != nil {
			t.drop(len(list), errkind.Line(err))
			t.putBack(dropped)
			if ctx.Err() == nil {
				n.say(fmt.Sprintf("warning: notify %s: not delivered: %s", t.Name, errkind.Line(err)))
			}
		}
	}
}

// gather waits a little for what belongs into the same message.
func (n *Notifier) gather(ctx context.Context, t *target, first Notice) []Notice {
	list := []Notice{first}
	full := time.NewTimer(n.options.Gather)
	defer full.Stop()
	for len(list) < batchSize {
		select {
		case next, open := <-t.queue:
			if !open {
				return list
			}
			list = append(list, next)
		case <-full.C:
			return list
		case <-ctx.Done():
			return list
		}
	}
	return list
}

// deliver sends one message, several times where the receiver is in trouble.
func (n *Notifier) deliver(ctx context.Context, t *target, list []Notice, dropped int) error {
	var message any = Message{Format: format, Site: n.site, Notices: list, Dropped: dropped}
	if t.Kind == "alertmanager" {
		alerts := make([]alert, len(list))
		for i, x := range list {
			alerts[i] = alertOf(n.site, x, t.Lasts)
		}
		message = alerts
	}
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	var last error
	for try := 0; ; try++ {
		again, pause, err := t.post(ctx, body)
		if ctx.Err() != nil && err != nil && last != nil {
			return last // and not that this try was cut off
		}
		last = err
		if err == nil || !again || try >= len(n.options.Pauses) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(max(pause, n.options.Pauses[try])):
		case <-ctx.Done():
			return err
		}
	}
}

// post sends a message once. again: it may go well later, after pause at the earliest.
// The error names no URL, which may be a secret.
func (t *target) post(ctx context.Context, body []byte) (again bool, pause time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return false, 0, errors.New("its URL is none")
	}
	req.Header = t.headers.Clone()
	resp, err := t.client.Do(req)
	if err != nil {
		if of, ok := errors.AsType[*url.Error](err); ok {
			err = of.Err
		}
		return true, 0, errkind.New(errkind.Unreachable, "%w", err)
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer)
	_ = resp.Body.Close()
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return false, 0, nil
	case code == http.StatusTooManyRequests || code >= 500:
		if after, aerr := time.ParseDuration(resp.Header.Get("Retry-After") + "s"); aerr == nil {
			pause = min(max(after, 0), maxPause)
		}
		return true, pause, errkind.New(errkind.Refused, "the receiver answers with status %d", code)
	default:
		return false, 0, errkind.New(errkind.Refused, "the receiver answers with status %d", code)
	}
}
