// SPDX-License-Identifier: Apache-2.0

// Package etcd keeps the state of a site in an etcd cluster, so that several controllers
// share it. One of them is the owner, by a lease; every write compares the owner's key and
// the counters that the write before left, in one transaction.
package etcd

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/commit"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Config says where the state lies.
type Config struct {
	Endpoints []string // URLs of the members for clients, such as https://10.0.0.1:2379
	// Prefix of every key, such as /ironrail/paris: a slash first and none at the end. Two
	// sites in one cluster have different ones, of which none begins with the other's.
	Prefix string
	// CA, Cert and Key are files in PEM: the authority of the members, and the certificate
	// of this controller. Certificate and key are read anew for each connection, so that
	// they can be replaced while ironrail runs.
	CA, Cert, Key string
	// Calls is how long a call to hardware may last at most once it has begun. An owner takes
	// its lease for ended so much earlier than etcd can, which gives it so much longer: what
	// it began is over before another controller is the owner.
	Calls time.Duration

	lease time.Duration // of the owner; 0: leaseTTL
}

// Bounds in time. A call to etcd ends with the first of its own deadline, that of its
// context, and the end of the lease.
const (
	leaseTTL    = 8 * time.Second         // of the owner, as etcd counts it
	leaseMargin = 2 * time.Second         // so much earlier the owner takes it for ended
	attemptTime = 2 * time.Second         // of one try of a call; then another member is asked
	callTime    = 15 * time.Second        // of a call with all its tries
	renewPause  = 2 * time.Second         // after a lease was renewed
	renewTime   = 1200 * time.Millisecond // of one try: a lease leaves time for three, and for an election between
	retryPause  = 100 * time.Millisecond
	// electionTime is how much longer than a lease another controller may take to be the owner:
	// the members may have to elect a leader first.
	electionTime = 7 * time.Second
)

// Store is the state in etcd. It is safe for concurrent use.
type Store struct {
	client *clientv3.Client
	trust  *tls.Config
	keys   keys
	info   state.Info
	lease  time.Duration // that an owner gets
	margin time.Duration // so much earlier it takes it for ended

	groups commit.Queue[*pending]
	commit sync.Mutex // held while the owner writes

	// Owned by who holds commit.
	last  *entry         // the head after the last write of this process; nil: to be read
	fresh map[string]int // by digest, how often a block was put under this fence and not named yet

	mu     sync.Mutex // guards what follows
	own    *ownership // of the last claim; nil: none
	closed bool
}

var _ state.Copier = (*Store)(nil)

// Open connects to etcd, checks the version of the members that answer, and makes the
// state where there is none. The error is of kind unreachable when no member answers, auth
// when they refuse the certificate, unsupported when one of them is too old or the state
// was written by a newer ironrail, and conflict when they are not of one cluster.
func Open(ctx context.Context, c Config) (*Store, error) { return open(ctx, c, true) }

// ErrNoState is the error of who looks where nobody has made a state.
var ErrNoState = errors.New("state: etcd has none")

// OpenExisting is Open for whoever only looks: it writes nothing. The error is
// ErrNoState where there is no state.
func OpenExisting(ctx context.Context, c Config) (*Store, error) { return open(ctx, c, false) }

func open(ctx context.Context, c Config, create bool) (*Store, error) {
	s, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := s.load(ctx, create); err != nil {
		_ = s.client.Close()
		return nil, err
	}
	return s, nil
}

// connect is open without a look at the state.
func connect(ctx context.Context, c Config) (*Store, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	trust, err := tlsOf(c)
	if err != nil {
		return nil, err
	}
	client, err := dial(c, trust)
	if err != nil {
		return nil, err
	}
	s := &Store{client: client, trust: trust, keys: keys{c.Prefix}, lease: cmp.Or(c.lease, leaseTTL) + c.Calls, margin: leaseMargin + c.Calls, fresh: map[string]int{}}
	s.groups.Fits = fits
	if err := s.checkMembers(ctx, c.Endpoints); err != nil {
		_ = client.Close()
		return nil, err
	}
	return s, nil
}

func (c Config) check() error {
	switch {
	case len(c.Endpoints) == 0:
		return errkind.New(errkind.Invalid, "state: etcd has no endpoints")
	case !strings.HasPrefix(c.Prefix, "/") || strings.HasSuffix(c.Prefix, "/"):
		return errkind.New(errkind.Invalid, "state: the prefix %q of etcd does not begin with a slash, or ends with one", c.Prefix)
	}
	return nil
}

// about is what the state says about itself, under keys.about.
type about struct {
	Format  int       `json:"format"`
	Reader  int       `json:"minimum_reader"` // oldest format number whose reader understands this state
	Lineage string    `json:"lineage"`
	Created time.Time `json:"created"`
	First   uint64    `json:"first"`
	Filling string    `json:"filling,omitempty"` // id of what fills the state, which is not whole yet
	Moved   string    `json:"moved,omitempty"`   // where the state is now
	Digest  string    `json:"digest,omitempty"`  // of the file that it was moved to, then
}

// load reads what the state says about itself, and makes it where create says so and there
// is none. Of several that make it, one does.
func (s *Store) load(ctx context.Context, create bool) error {
	is := about{Format: state.Format, Reader: state.Format, Lineage: rand.Text(), Created: time.Now().UTC(), First: 1}
	text, err := json.Marshal(is)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	var first []clientv3.Op
	if create {
		first = []clientv3.Op{clientv3.OpPut(s.keys.about(), string(text)), clientv3.OpPut(s.keys.head(), head{}.String())}
	}
	resp, err := retry(ctx, callTime, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(s.keys.about()), "=", 0)).Then(first...).
			Else(clientv3.OpGet(s.keys.about())).Commit()
	})
	if err != nil {
		return explain("open", err)
	}
	if resp.Succeeded && !create {
		return fmt.Errorf("%w under %s", ErrNoState, s.keys.prefix)
	}
	if !resp.Succeeded {
		is = about{}
		if err := json.Unmarshal(resp.Responses[0].GetResponseRange().Kvs[0].Value, &is); err != nil {
			return s.damaged(fmt.Errorf("%s: %w", s.keys.about(), err))
		}
	}
	if err := is.passable(s.keys); err != nil {
		return err
	}
	if is.Reader > state.Format {
		return errkind.New(errkind.Unsupported, "state: etcd has format %d under %s, and this ironrail reads up to format %d", is.Format, s.keys.prefix, state.Format).
			Do("Use the newer ironrail that wrote it.")
	}
	if is.Format != state.Format {
		return s.damaged(fmt.Errorf("its format is %d", is.Format))
	}
	s.info = state.Info{Format: is.Format, Lineage: is.Lineage, Created: is.Created, First: is.First}
	return nil
}

// damaged says that what lies under the prefix is not as this package wrote it.
func (s *Store) damaged(err error) error {
	if errkind.Of(err) == errkind.Refused { // it is whole, and elsewhere
		return err
	}
	return errkind.New(errkind.Corrupt, "state: what etcd has under %s is damaged or not a state: %w", s.keys.prefix, err).
		Do("Put back a copy of the state under another prefix, or a snapshot of etcd. Without one, use another prefix and adopt the nodes that run: nothing is installed because the state is lost.")
}

// Info says what this state is.
func (s *Store) Info() state.Info { return s.info }

// Close waits for the write under way, gives the lease back, and ends all connections.
func (s *Store) Close() error {
	s.mu.Lock()
	was, own := s.closed, s.own
	s.closed = true
	s.mu.Unlock()
	if was {
		return nil
	}
	s.commit.Lock()
	defer s.commit.Unlock()
	if own != nil {
		own.lease.giveBack(s.client)
	}
	if err := s.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("state: close: %w", err)
	}
	return nil
}

// usable returns why a call must not go on.
func (s *Store) usable(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return state.ErrClosed
	}
	return nil
}

// owned returns the last claim of this process; nil: none.
func (s *Store) owned() *ownership {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own
}
