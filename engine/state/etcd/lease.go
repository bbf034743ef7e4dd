// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ironrail/ironrail/engine/state"
)

// lease keeps the lease of an owner alive. It is taken for ended a margin before etcd can
// take it so: etcd counts from when it answered, and this process from when it asked.
type lease struct {
	id     clientv3.LeaseID
	margin time.Duration
	ended  chan struct{}
	stop   context.CancelFunc
	done   chan struct{} // closed once nothing keeps it alive any more

	mu     sync.Mutex // guards what follows
	until  time.Time  // by the monotonic clock, which goes on while the process is stopped
	isOver bool
}

var _ state.Lease = (*lease)(nil)

// grant asks for a lease, and keeps it alive until it is given back or lost.
func grant(ctx context.Context, client *clientv3.Client, ttl, margin time.Duration) (*lease, error) {
	asked := time.Now()
	resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) {
		asked = time.Now()
		return client.Grant(ctx, int64(ttl/time.Second))
	})
	if err != nil {
		return nil, explain("lease", err)
	}
	keep, stop := context.WithCancel(context.Background())
	l := &lease{id: resp.ID, margin: margin, ended: make(chan struct{}), done: make(chan struct{}), stop: stop, until: asked.Add(ttl - margin)}
	go func() {
		defer close(l.done)
		l.keepAlive(keep, client)
	}()
	return l, nil
}

// keepAlive returns when ctx ends, or the lease.
func (l *lease) keepAlive(ctx context.Context, client *clientv3.Client) {
	pause := time.NewTimer(renewPause)
	defer pause.Stop()
	for {
		until, _ := l.Until()
		end := time.NewTimer(time.Until(until))
		select {
		case <-ctx.Done():
			end.Stop()
			return
		case <-end.C:
			l.end()
			return
		case <-pause.C:
			end.Stop()
		}
		if !time.Now().Before(until) { // the process was stopped
			l.end()
			return
		}
		next, lives := l.renew(ctx, client, until)
		if !lives {
			return
		}
		pause.Reset(next)
	}
}

// renew asks etcd once to keep the lease, and returns after which pause to ask again; false:
// it has ended.
func (l *lease) renew(ctx context.Context, client *clientv3.Client, until time.Time) (pause time.Duration, lives bool) {
	asked := time.Now()
	ctx, cancel := context.WithDeadline(ctx, minTime(until, asked.Add(renewTime)))
	defer cancel()
	resp, err := client.KeepAliveOnce(clientv3.WithRequireLeader(ctx), l.id)
	switch {
	case err == nil && resp.TTL > 0:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.until = asked.Add(time.Duration(resp.TTL)*time.Second - l.margin)
		return renewPause, true
	case isLeaseLost(err):
		l.end()
		return 0, false
	}
	return retryPause, true
}

// Until returns when the lease ends, less its margin.
func (l *lease) Until() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until, true
}

// Ended is closed when the lease has ended.
func (l *lease) Ended() <-chan struct{} { return l.ended }

// lives reports whether the lease has not ended now, whatever its keeper has seen.
func (l *lease) lives() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.isOver && time.Now().Before(l.until)
}

// end notes that the lease is over: another controller may be the owner.
func (l *lease) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isOver {
		l.isOver, l.until = true, time.Now()
		close(l.ended)
	}
}

// giveBack ends the lease, here and in etcd, so that another controller can claim at once.
func (l *lease) giveBack(client *clientv3.Client) {
	l.stop()
	<-l.done
	l.end()
	ctx, cancel := context.WithTimeout(context.Background(), attemptTime)
	defer cancel()
	_, _ = client.Revoke(ctx, l.id) // else it runs out
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// over is the lease under a fence that is no longer the last one.
type over struct{}

// Until returns a time that has passed.
func (over) Until() (time.Time, bool) { return time.Time{}, true }

// Ended returns a channel that is closed.
func (over) Ended() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Lease is for how long the writer with this fence is sure to be the only one.
func (s *Store) Lease(f state.Fence) state.Lease {
	if own := s.owned(); own != nil && own.fence == f.Number {
		return own.lease
	}
	return over{}
}
