// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ironrail/ironrail/internal/errkind"
)

// leastMajor and leastMinor are the oldest etcd that tests run against.
const leastMajor, leastMinor = 3, 4

// dial makes a client; it connects with the first call.
func dial(c Config, trust *tls.Config) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: c.Endpoints, TLS: trust, Logger: zap.NewNop(),
		DialTimeout: attemptTime, DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: attemptTime, PermitWithoutStream: true,
	})
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "state: etcd: %w", err)
	}
	return client, nil
}

func tlsOf(c Config) (*tls.Config, error) {
	b, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "state: authority of etcd: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, errkind.New(errkind.Invalid, "state: authority of etcd: %s has no certificate", c.CA)
	}
	load := func() (*tls.Certificate, error) {
		cert, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate for etcd: %w", err)
		}
		return &cert, nil
	}
	if _, err := load(); err != nil {
		return nil, errkind.New(errkind.Invalid, "state: %w", err)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }}, nil
}

// checkMembers asks every member for its version and cluster. One that does not answer is
// passed over, unless none does.
func (s *Store) checkMembers(ctx context.Context, endpoints []string) error {
	type answer struct {
		resp *clientv3.StatusResponse
		err  error
	}
	answers := make(chan answer)
	for _, e := range endpoints {
		go func() {
			ctx, cancel := context.WithTimeout(ctx, attemptTime)
			defer cancel()
			resp, err := s.client.Status(ctx, e)
			answers <- answer{resp, err}
		}()
	}
	var got []*clientv3.StatusResponse
	var failed error
	for range endpoints {
		if a := <-answers; a.err == nil {
			got = append(got, a.resp)
		} else {
			failed = a.err
		}
	}
	if len(got) == 0 {
		return s.explainSilence(ctx, endpoints, failed)
	}
	for _, r := range got {
		if !isRecent(r.Version) {
			return errkind.New(errkind.Unsupported, "state: a member of etcd has version %s; the oldest that is supported is %d.%d", r.Version, leastMajor, leastMinor).
				Do("Upgrade etcd one minor version at a time, as its documentation says.")
		}
		if r.Header.ClusterId != got[0].Header.ClusterId {
			return errkind.New(errkind.Conflict, "state: the endpoints of etcd are of different clusters (%x and %x)", got[0].Header.ClusterId, r.Header.ClusterId).
				Do("Name the members of one cluster only.")
		}
	}
	return nil
}

// explainSilence says why no member answers: the client itself says only that it waited.
func (s *Store) explainSilence(ctx context.Context, endpoints []string, silence error) error {
	var kept *errkind.Error
	for _, e := range endpoints {
		addr := strings.TrimPrefix(e, "https://")
		err := greet(ctx, addr, s.trust)
		kind := errkind.Of(err)
		switch {
		case err == nil:
			continue
		case isTLS(err):
			kind = errkind.Auth
		case kind == errkind.Internal:
			kind = errkind.Unreachable
		}
		if kept == nil || kind == errkind.Auth {
			kept = errkind.New(kind, "state: connect: etcd member %s: %w", addr, err)
		}
	}
	switch {
	case kept == nil:
		return explain("connect", silence)
	case kept.Kind == errkind.Auth:
		return kept.Do("Look whether ca names the authority of the members, and whether they trust the authority of cert.")
	}
	return kept.Do("Look whether the members run, and whether the endpoints are their client URLs.")
}

// greet connects to a member and waits for what it has against the certificate; nil: it
// says nothing.
func greet(ctx context.Context, addr string, trust *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	trust = trust.Clone()
	trust.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{Config: trust}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	if _, err := conn.Read(make([]byte, 1)); err != nil && isTLS(err) {
		return err
	}
	return nil
}

// isTLS reports whether one of the two sides refused the other's certificate.
func isTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err) // an alert of the other side
	return ok && op.Op == "remote error"
}

// isRecent reports whether a version, such as 3.4.23, is one that is supported.
func isRecent(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (major > leastMajor || major == leastMajor && minor >= leastMinor)
}

// isPassing reports whether another try may have another result: the member is gone, has
// no leader or is slow. Nobody knows then whether a write was done.
func isPassing(err error) bool {
	switch codeOf(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.Canceled, codes.Unknown:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}

func codeOf(err error) codes.Code {
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return e.Code()
	}
	return status.Code(err)
}

// retry makes a call that may be made twice, each time with its own deadline, until it is
// answered or the time is over.
func retry[T any](ctx context.Context, limit time.Duration, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		got, err := attempt(ctx, call)
		if err == nil || !isPassing(err) || ctx.Err() != nil {
			return got, err
		}
		select {
		case <-ctx.Done():
			return got, err
		case <-time.After(retryPause):
		}
	}
}

// attempt makes a call once, of a member that has a leader.
func attempt[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	return call(clientv3.WithRequireLeader(ctx))
}

// explain says what an error of etcd means to the operator.
func explain(what string, err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrNoSpace):
		return errkind.New(errkind.Interrupted, "state: %s: etcd has no space left (NOSPACE)", what).
			Do("Nothing that was recorded is lost. Make room with etcdctl compact and etcdctl defrag, or raise --quota-backend-bytes, then etcdctl alarm disarm, and apply again.")
	case errors.Is(err, rpctypes.ErrTooManyOps), errors.Is(err, rpctypes.ErrRequestTooLarge):
		return errkind.New(errkind.Unsupported, "state: %s: %w", what, err).
			Do("Let --max-txn-ops and --max-request-bytes of etcd have their defaults (128 and 1.5 MiB), or more.")
	}
	kind := errkind.Internal
	switch codeOf(err) {
	case codes.Unauthenticated, codes.PermissionDenied:
		kind = errkind.Auth
	case codes.DeadlineExceeded:
		kind = errkind.Timeout
	case codes.Unavailable:
		kind = errkind.Unreachable
	default:
		if errors.Is(err, context.DeadlineExceeded) {
			kind = errkind.Timeout
		}
	}
	return errkind.New(kind, "state: %s: etcd: %w", what, err).
		Do("Look with etcdctl endpoint health whether a majority of the members answers.")
}
