// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/rehearse/virtual/model"
)

// The words and formats are those of perftest (linux-rdma/perftest, 4.5 of Debian
// 12 and 23.x), read in its sources and in public outputs.

// perf is one side of ib_write_bw or ib_write_lat.
type perf struct {
	call
	latency bool
	device  string
	gid     int
	size    int64
	writes  int
	seconds int // -D; 0: by number
	port    int
	qps     int
	gbits   bool
	server  string // address of the other side; "" on the server itself

	at   Port
	mtu  int
	link string // "IB" or "Ethernet"
	mine hello
}

// hello is what the two sides tell each other.
type hello struct {
	Port model.PortID
	GID  string
	LID  int
	QPN  int
	PSN  int
	RKey int
	VAdr uint64
}

// outcome is what the client tells the server at the end.
type outcome struct {
	Fault   string // as it stands in the client's output; "": none
	Writes  int64
	Peak    float64
	Average float64
	Latency time.Duration
}

// sleepBefore is the second that the client waits before the sides compare their
// versions (sleep(1) in write_bw.c).
const sleepBefore = time.Second

// serverStart and clientStart are how long the two sides take to open the device
// and to register memory. The client also looks its server up: of two that are
// started together, the server listens first.
const (
	serverStart = 90 * time.Millisecond
	clientStart = 140 * time.Millisecond
)

// arpTime and retryTime are how long a node asks for a neighbour that is not
// there, and how long a queue pair tries again (timeout 14, seven retries).
const (
	arpTime   = 3 * time.Second
	retryTime = 4 * time.Second
)

// writeBW is ib_write_bw and ib_write_lat.
func writeBW(ctx context.Context, c call) int {
	p, err := perfOptions(c)
	if err != nil {
		_, _ = fmt.Fprintln(c.Err, err)
		return 1
	}
	if !p.open() {
		return 1
	}
	start := serverStart
	if p.server != "" {
		start = clientStart
	}
	if c.n.cfg.Clock.Sleep(ctx, start) != nil {
		return 137
	}
	if p.server == "" {
		return p.serve(ctx)
	}
	return p.runClient(ctx)
}

// perfOptions reads the command line.
func perfOptions(c call) (*perf, error) {
	p := &perf{call: c, latency: c.name() == "ib_write_lat", size: 65536, writes: 5000, port: 18515, qps: 1, gid: -1}
	if p.latency {
		p.size, p.writes = 2, 1000
	}
	err := p.parse(c.Argv[1:])
	if err == nil && (p.size <= 0 || p.writes <= 0 || p.port <= 0 || p.port > 65535) {
		err = errors.New(" Invalid value in command line")
	}
	return p, err
}

// parse takes the options and the address of the server.
func (p *perf) parse(argv []string) error {
	for i := 0; i < len(argv); i++ {
		switch a := argv[i]; a {
		case "-d", "--ib-dev":
			if i++; i < len(argv) {
				p.device = argv[i]
			}
		case "-x", "-s", "-n", "-p", "-D", "-q", "-i", "-m", "-t", "-S", "-R", "--tclass", "--tos":
			if i++; i == len(argv) {
				return errors.New(" Invalid Command or flag. Please check command line and run again")
			}
			n, err := strconv.Atoi(argv[i])
			if err != nil {
				return err
			}
			p.set(a, n)
		case "--report_gbits":
			p.gbits = true
		default:
			if !strings.HasPrefix(a, "-") {
				p.server = a
			}
		}
	}
	return nil
}

func (p *perf) set(option string, n int) {
	switch option {
	case "-x":
		p.gid = n
	case "-s":
		p.size = int64(n)
	case "-n":
		p.writes = n
	case "-p":
		p.port = n
	case "-D":
		p.seconds = n
	case "-q":
		p.qps = n
	}
}

// open finds the device and looks at its port, as the real program does first.
func (p *perf) open() bool {
	dir := "sys/class/infiniband/" + p.device
	at, ok := p.n.portOf(p.device)
	if !ok || p.device == "" || at.RDMA != p.device || !p.n.tree.exists(dir) {
		_, _ = fmt.Fprintf(p.Err, "IB device %s not found\n Unable to find the Infiniband/RoCE device\n", p.device)
		return false
	}
	p.at, p.link = at, "IB"
	if p.n.fs.Text(dir, "ports/1/link_layer") == "Ethernet" {
		p.link = "Ethernet"
	}
	if _, state, _ := strings.Cut(p.n.fs.Text(dir, "ports/1/state"), ": "); state != "ACTIVE" {
		_, _ = fmt.Fprintf(p.Err, " Port number 1 state is %s\n Couldn't set the link layer\n Couldn't get context for the device\n", portState(state))
		return false
	}
	p.mtu = 4096
	if p.link == "Ethernet" {
		p.mtu = activeMTU(int(p.n.fs.Int("sys/class/net", at.Netdev, "mtu")))
	}
	seed := int(p.n.cfg.Clock.Now().UnixNano())
	p.mine = hello{Port: at.ID, QPN: 0x11 + seed>>10&0xfff, PSN: seed >> 4 & 0xffffff, RKey: 0x180000 + seed>>8&0xffff, VAdr: 0x7f0000000000 + uint64(seed)&0xfffff000}
	if p.gid >= 0 {
		p.mine.GID = p.n.fs.Text(dir, "ports/1/gids", strconv.Itoa(p.gid))
	}
	if lid, err := strconv.ParseInt(p.n.fs.Text(dir, "ports/1/lid"), 0, 32); err == nil {
		p.mine.LID = int(lid)
	}
	return true
}

// activeMTU is iboe_get_mtu of the kernel (include/rdma/ib_addr.h).
func activeMTU(mtu int) int {
	for _, size := range []int{4096, 2048, 1024, 512, 256} {
		if mtu-96 >= size {
			return size
		}
	}
	return 256
}

// serve waits for the one client.
func (p *perf) serve(ctx context.Context) int {
	// The real program listens on every address.
	ln, err := p.n.cfg.Net.Listen(ctx, "tcp", netip.AddrPortFrom(p.n.cfg.Address, uint16(p.port)).String())
	if err != nil {
		_, _ = fmt.Fprintf(p.Err, "Couldn't listen to port %d\nUnable to open file descriptor for socket connection Unable to init the socket connection\n", p.port)
		return 1
	}
	p.print("\n************************************\n* Waiting for client to connect... *\n************************************\n")
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	conn, err := ln.Accept()
	_ = ln.Close()
	if err != nil {
		return 1
	}
	defer conn.Close()
	stopConn := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stopConn()
	in := bufio.NewReader(conn)
	var peer hello
	var end outcome
	if receiveMessage(in, &peer) != nil || sendMessage(conn, p.mine) != nil {
		return p.alone()
	}
	p.header(peer)
	if receiveMessage(in, &end) != nil {
		return p.alone()
	}
	if end.Fault != "" {
		return p.alone()
	}
	p.table(end)
	return 0
}

// alone is what a server says whose client went away.
func (p *perf) alone() int {
	_, _ = io.WriteString(p.Err, " Unable to read to socket/rdma_cm\n Failed to exchange data between server and clients\n")
	return 1
}

// runClient is the client.
func (p *perf) runClient(ctx context.Context) int {
	conn, err := p.n.cfg.Net.Dial(ctx, "tcp", net.JoinHostPort(p.server, strconv.Itoa(p.port)))
	if err != nil {
		_, _ = fmt.Fprintf(p.Err, "Couldn't connect to %s:%d\nUnable to open file descriptor for socket connection Unable to init the socket connection\n", p.server, p.port)
		return 1
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if p.n.cfg.Clock.Sleep(ctx, sleepBefore) != nil {
		return 137
	}
	in := bufio.NewReader(conn)
	var peer hello
	if sendMessage(conn, p.mine) != nil || receiveMessage(in, &peer) != nil {
		return p.alone()
	}
	p.header(peer)
	end, wait := p.measure(peer)
	if p.n.cfg.Clock.Sleep(ctx, wait) != nil {
		return 137
	}
	if end.Fault != "" {
		_, _ = io.WriteString(p.Err, end.Fault)
		_ = sendMessage(conn, end) // the server may be gone
		return 1
	}
	p.n.cfg.Site.model.Carry(p.at.ID, peer.Port, p.qps, end.Writes*p.size)
	if sendMessage(conn, end) != nil {
		return p.alone()
	}
	p.table(end)
	return 0
}

// measure asks the model, and says how long the answer takes.
func (p *perf) measure(peer hello) (outcome, time.Duration) {
	rtr := fmt.Sprintf(" Failed to modify QP %d to RTR\n Unable to Connect the HCA's through the link\n", p.mine.QPN)
	retry := " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n"
	if p.link == "Ethernet" && (isEmptyGID(p.mine.GID) || isEmptyGID(peer.GID)) {
		return outcome{Fault: rtr}, 0 // EINVAL: a GID index that is not filled
	}
	flow, err := p.n.cfg.Site.model.Write(model.Question{Test: p.name(), From: p.at.ID, To: peer.Port, Size: p.size, MTU: p.mtu, Flows: p.qps})
	switch {
	case errors.Is(err, model.ErrLoss), err != nil && p.link == "IB":
		return outcome{Fault: retry}, retryTime
	case err != nil:
		return outcome{Fault: rtr}, arpTime // nobody answers ARP
	}
	end := outcome{Writes: int64(p.writes * p.qps), Peak: flow.Peak, Average: flow.Average, Latency: flow.Latency}
	if p.latency {
		return end, time.Duration(end.Writes) * 2 * flow.Latency
	}
	if p.seconds > 0 {
		end.Writes, end.Peak = int64(flow.Average*float64(p.seconds)/float64(p.size)), 0
	}
	return end, time.Duration(float64(end.Writes*p.size) / flow.Average * float64(time.Second))
}

// isEmptyGID reports whether a GID is none.
func isEmptyGID(gid string) bool { return strings.Trim(gid, "0:") == "" }

const dashes = "---------------------------------------------------------------------------------------\n"

// header prints what both sides print before the table.
func (p *perf) header(peer hello) {
	what := "RDMA_Write BW Test"
	if p.latency {
		what = "RDMA_Write Latency Test"
	}
	transport := "IB"
	p.print(dashes + "                    " + what + "\n")
	p.print(fmt.Sprintf(" Dual-port       : OFF\t\tDevice         : %s\n Number of qps   : %d\t\tTransport type : %s\n Connection type : RC\t\tUsing SRQ      : OFF\n PCIe relax order: ON\n", p.device, p.qps, transport))
	if p.server != "" {
		p.print(" ibv_wr* API     : OFF\n TX depth        : 128\n")
	}
	p.print(fmt.Sprintf(" CQ Moderation   : 1\n Mtu             : %d[B]\n Link type       : %s\n", p.mtu, p.link))
	if p.gid >= 0 {
		p.print(fmt.Sprintf(" GID index       : %d\n", p.gid))
	}
	p.print(" Max inline data : 0[B]\n rdma_cm QPs\t : OFF\n Data ex. method : Ethernet\n" + dashes)
	for _, side := range []struct {
		name string
		h    hello
	}{{"local", p.mine}, {"remote", peer}} {
		p.print(fmt.Sprintf(" %s address: LID %#04x QPN %#06x PSN %#x RKey %#08x VAddr %#016x\n", side.name, side.h.LID, side.h.QPN, side.h.PSN, side.h.RKey, side.h.VAdr))
		if side.h.GID != "" {
			p.print(" GID: " + decimalGID(side.h.GID) + "\n")
		}
	}
	p.print(dashes)
}

// decimalGID writes a GID as perftest does: its bytes in decimal.
func decimalGID(text string) string {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return text
	}
	var list []string
	for _, b := range a.As16() {
		list = append(list, fmt.Sprintf("%02d", b))
	}
	return strings.Join(list, ":")
}

// table prints the result.
func (p *perf) table(o outcome) {
	if p.latency {
		us := o.Latency.Seconds() * 1e6
		p.print(" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n")
		p.print(fmt.Sprintf(" %-7d %d          %-7.2f        %-7.2f      %-7.2f     %-7.2f     %-7.2f\t\t%-7.2f \t\t%-7.2f\n", p.size, o.Writes, us*0.97, us*1.6, us, us*1.01, us*0.02, us*1.08, us*1.4))
		p.print(dashes)
		return
	}
	unit, name := float64(1<<20), "MB/sec"
	if p.gbits {
		unit, name = 125e6, "Gb/sec"
	}
	p.print(fmt.Sprintf(" #bytes     #iterations    BW peak[%s]    BW average[%s]   MsgRate[Mpps]\n", name, name))
	p.print(fmt.Sprintf(" %-7d    %-10d       %-7.2f            %-7.2f\t\t   %-7.6f\n", p.size, o.Writes, o.Peak/unit, o.Average/unit, o.Average/float64(p.size)/1e6))
	p.print(dashes)
}

// sendMessage writes one message; receive reads one.
func sendMessage(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// maxMessage bounds a message between two sides.
const maxMessage = 4 << 10

func receiveMessage(r *bufio.Reader, v any) error {
	line, err := r.ReadSlice('\n')
	if err != nil || len(line) > maxMessage {
		return errors.Join(err, errors.New("no message"))
	}
	return json.Unmarshal(line, v)
}
