package tftp

import (
	"context"
	"net"

	"github.com/pin/tftp/v3"

	"github.com/ironrail/ironrail/provision/errkind"
)

// serveSingle serves a connection that is no socket of the operating system: all
// transfers go through it. It returns nil when ctx is done, with conn closed and
// all transfers ended.
func serveSingle(ctx context.Context, srv *tftp.Server, conn net.PacketConn) error {
	srv.SetBlockSizeNegotiation(false) // there is no interface whose MTU could be asked for
	srv.EnableSinglePort()
	defer conn.Close()
	// The library must see the end before it sees a closed connection: reading
	// from that one it would spin until the last transfer has ended.
	stop := context.AfterFunc(ctx, srv.Shutdown)
	defer stop()
	for {
		err, broken := serveOnce(srv, conn)
		switch {
		case broken:
			continue
		case ctx.Err() != nil:
			return nil
		}
		return errkind.New(errkind.Internal, "tftp: serve %s: %w", conn.LocalAddr(), err)
	}
}

// serveOnce serves until the end or until the library panics: v3.2.0 sends into
// the channel of a transfer that may just have been closed. That costs the one
// datagram, and its sender repeats it.
func serveOnce(srv *tftp.Server, conn net.PacketConn) (err error, broken bool) {
	defer func() { broken = recover() != nil }()
	return srv.Serve(conn), false
}
