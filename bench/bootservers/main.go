// SPDX-License-Identifier: Apache-2.0

// Command bootservers measures the CPU time and the throughput of the boot services beside those
// of others, in interleaved rounds: images by HTTP in ranges of 4 MiB beside nginx, a loader by
// TFTP, one block at a time, beside dnsmasq, and the exchanges of DHCP of known clients beside Kea.
// Servers are processes of their own, on loopback or on a pair of veth interfaces; their CPU time is
// that of their own clock (clock_getcpuclockid(3)). See bench/bootservers.sh, which gives them a
// network of their own.
//
//	bootservers [-rounds N] [-only http|tftp|dhcp|storm]
//	bootservers http STORE ADDRESS      serve a store of images; for the command itself
//	bootservers tftp FILE ADDRESS       serve a file as a loader
//	bootservers dhcp CLIENTS            answer DHCP on srv0
package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/httpboot"
	"github.com/ironrail/ironrail/provision/netboot/loader"
	"github.com/ironrail/ironrail/provision/netboot/tftp"
)

// What is fetched: an image, and a loader of about the size of iPXE's.
const (
	imageSize  = 256 << 20
	rangeSize  = 4 << 20
	imageTurns = 24 // whole images in one measurement
	streams    = 4
	loaderSize = 1 << 20
	loads      = 200 // loaders in one measurement
	blockSize  = 1468
)

func main() {
	log.SetFlags(0)
	rounds := flag.Int("rounds", 5, "how often each server is measured")
	only := flag.String("only", "", "measure http, tftp, dhcp or storm alone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	var err error
	switch args := flag.Args(); {
	case len(args) == 0:
		err = measure(ctx, *rounds, *only)
	case len(args) == 3 && args[0] == "http":
		err = serveHTTP(ctx, args[1], args[2])
	case len(args) == 3 && args[0] == "tftp":
		err = serveTFTP(ctx, args[1], args[2])
	case len(args) == 2 && args[0] == "dhcp":
		err = serveDHCP(ctx, args[1])
	default:
		err = errors.New("usage: bootservers [-rounds N] [-only http|tftp|dhcp|storm]")
	}
	if err != nil {
		log.Fatal(err)
	}
}

// node knows whoever asks as one node that boots.
type node struct{}

func (node) ByMAC(addr.MAC) (boot.Client, bool) { return boot.Client{}, false }

func (node) ByAddress(netip.Addr) (boot.Client, bool) {
	return boot.Client{Node: "n1", MACs: []addr.MAC{{2, 0, 0, 0, 0, 1}}}, true
}

func (node) Attempt(string) (boot.Attempt, bool) { return boot.Attempt{}, false }

// nothing records nothing.
type nothing struct{}

func (nothing) Record(boot.Evidence) {}

func serveHTTP(ctx context.Context, dir, address string) error {
	s, err := store.Open(dir, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp4", address)
	if err != nil {
		return err
	}
	server, err := httpboot.New(httpboot.Config{Root: netip.MustParseAddrPort(address), Source: node{}, Recorder: nothing{}, Mounts: []httpboot.Mount{{Prefix: "/images/", Handler: s.Handler("/images/")}}})
	if err != nil {
		return err
	}
	return server.Serve(ctx, ln)
}

func serveTFTP(ctx context.Context, file, address string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	conn, err := net.ListenPacket("udp4", address)
	if err != nil {
		return err
	}
	return tftp.New(tftp.Config{Loaders: loader.Set{loader.IPXE: b}, Source: node{}, Recorder: nothing{}}).Serve(ctx, conn)
}

// peer is a server that is measured.
type peer struct {
	name  string
	argv  []string
	env   []string
	fetch func(ctx context.Context) (amount int64, err error) // bytes or exchanges
	used  []float64                                           // CPU seconds for each of the amount, of each round
	rate  []float64                                           // of the amount in a second
	rss   int64                                               // bytes, the most of all rounds
}

// measure prints a line for each server and one for each pair: first is the other's.
func measure(ctx context.Context, rounds int, only string) error {
	work, err := os.MkdirTemp("", "bootservers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, m := range []struct {
		name    string
		measure func(context.Context, int, string, string) error
	}{{"http", measureHTTP}, {"tftp", measureTFTP}, {"dhcp", measureDHCP}, {"storm", measureStorm}} {
		if only != "" && only != m.name {
			continue
		}
		if err := m.measure(ctx, rounds, work, self); err != nil {
			return err
		}
	}
	return nil
}

func measureHTTP(ctx context.Context, rounds int, work, self string) error {
	blob, err := makeImage(ctx, work)
	if err != nil {
		return err
	}
	const own, others = "127.0.0.1:8081", "127.0.0.1:8082"
	if err := os.WriteFile(filepath.Join(work, "nginx.conf"), fmt.Appendf(nil, nginxConf, work, others, filepath.Join(work, "store")), 0o644); err != nil {
		return err
	}
	return compare(ctx, rounds, "HTTP, ranges of 4 MiB", perGB, []*peer{
		{name: "nginx", argv: []string{"nginx", "-c", filepath.Join(work, "nginx.conf"), "-p", work}, fetch: func(ctx context.Context) (int64, error) { return fetchRanges(ctx, "http://"+others+"/images/"+blob) }},
		{name: "ironrail", argv: []string{self, "http", filepath.Join(work, "store"), own}, fetch: func(ctx context.Context) (int64, error) { return fetchRanges(ctx, "http://"+own+"/images/"+blob) }},
	})
}

func measureTFTP(ctx context.Context, rounds int, work, self string) error {
	b := make([]byte, loaderSize)
	rand.Read(b)
	if err := os.WriteFile(filepath.Join(work, loader.IPXE), b, 0o644); err != nil {
		return err
	}
	for _, atOnce := range []int{1, 32} {
		if err := compare(ctx, rounds, fmt.Sprintf("TFTP, window of one block of 1468 bytes, %d at once", atOnce), perGB, tftpPeers(work, self, atOnce)); err != nil {
			return err
		}
	}
	return nil
}

func tftpPeers(work, self string, atOnce int) []*peer {
	const own, others = "127.0.0.1:8069", "127.0.0.2:69"
	return []*peer{
		{name: "dnsmasq", argv: []string{"dnsmasq", "--conf-file=/dev/null", "--keep-in-foreground", "--port=0", "--enable-tftp", "--tftp-root=" + work, "--listen-address=127.0.0.2", "--bind-interfaces", "--user=root", "--pid-file=" + filepath.Join(work, "dnsmasq.pid")},
			fetch: func(ctx context.Context) (int64, error) { return fetchLoaders(ctx, others, atOnce) }},
		{name: "ironrail", argv: []string{self, "tftp", filepath.Join(work, loader.IPXE), own}, fetch: func(ctx context.Context) (int64, error) { return fetchLoaders(ctx, own, atOnce) }},
	}
}

// nginxConf has one process, as ours; sendfile, as any that serves images.
const nginxConf = `daemon off;
master_process off;
worker_processes 1;
pid %[1]s/nginx.pid;
error_log stderr crit;
events { worker_connections 64; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000;
  client_body_temp_path %[1]s/t1;
  proxy_temp_path %[1]s/t2;
  fastcgi_temp_path %[1]s/t3;
  uwsgi_temp_path %[1]s/t4;
  scgi_temp_path %[1]s/t5;
  server {
    listen %[2]s;
    location /images/ { alias %[3]s/; }
  }
}
`

// makeImage makes a store with one image and returns the path of its blob in the store.
func makeImage(ctx context.Context, work string) (string, error) {
	disk := filepath.Join(work, "disk")
	f, err := os.Create(disk)
	if err != nil {
		return "", err
	}
	_, err = io.CopyN(f, rand.Reader, imageSize)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if out, err := exec.CommandContext(ctx, "sgdisk", "--zap-all", "--new=1:4096:0", disk).CombinedOutput(); err != nil {
		return "", fmt.Errorf("sgdisk: %w: %s", err, out)
	}
	s, err := store.Open(filepath.Join(work, "store"), ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		return "", err
	}
	digest, err := s.Put(ctx, store.Source{Name: "image.bench", Recipe: "sha256:" + strings.Repeat("0", 64), Disk: disk}, func(string) {})
	if err != nil {
		return "", err
	}
	return store.Path(digest, store.BlobFile), os.Remove(disk)
}

// unit is what an amount is counted in.
type unit struct {
	cost  string  // of CPU time
	scale float64 // from CPU seconds for each of the amount to cost
	rate  string
	size  float64 // of the amount in one of rate
}

var (
	perGB       = unit{"CPU seconds a GB", 1e9, "MB/s", 1e6}
	perExchange = unit{"CPU µs an exchange", 1e6, "exchanges/s", 1}
)

// compare measures servers in turns and prints what each uses, and the ratio of each that is not
// ours to the last, which is: above 1 ours uses less.
func compare(ctx context.Context, rounds int, what string, u unit, peers []*peer) error {
	for range rounds {
		for _, p := range peers {
			if err := p.round(ctx); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	own := peers[len(peers)-1]
	fmt.Println(what)
	var lines []string
	for _, p := range peers {
		var ratios []float64
		for i := range rounds {
			ratios = append(ratios, p.used[i]/own.used[i])
		}
		slices.Sort(ratios)
		if p != own {
			lines = append(lines, fmt.Sprintf("  ironrail does in a CPU second %.2f (%.2f to %.2f) of what %s does", ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1], p.name))
		}
	}
	for _, p := range peers {
		slices.Sort(p.used)
		slices.Sort(p.rate)
		fmt.Printf("  %-22s %7.3f %s (%.3f to %.3f), %.0f %s, %d MiB\n", p.name, p.used[len(p.used)/2]*u.scale, u.cost, p.used[0]*u.scale, p.used[len(p.used)-1]*u.scale,
			p.rate[len(p.rate)/2]/u.size, u.rate, p.rss>>20)
	}
	fmt.Println(strings.Join(lines, "\n"))
	return nil
}

// round starts the server, fetches from it, and ends it.
func (p *peer) round(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { // how it ends after a signal is not asked
		_ = cmd.Process.Signal(unix.SIGTERM)
		_ = cmd.Wait()
	}()
	if _, err := retry(ctx, p.fetch); err != nil { // warm
		return err
	}
	before, err := processorTime(cmd.Process.Pid)
	if err != nil {
		return err
	}
	began := time.Now()
	n, err := p.fetch(ctx)
	if err != nil {
		return err
	}
	wall := time.Since(began)
	after, err := processorTime(cmd.Process.Pid)
	p.used = append(p.used, (after-before).Seconds()/float64(n))
	p.rate = append(p.rate, float64(n)/wall.Seconds())
	rss, rssErr := mostMemory(cmd.Process.Pid)
	p.rss = max(p.rss, rss)
	return errors.Join(err, rssErr)
}

// retry fetches as soon as the server answers.
func retry(ctx context.Context, fetch func(context.Context) (int64, error)) (n int64, err error) {
	for range 100 {
		if n, err = fetch(ctx); err == nil || ctx.Err() != nil {
			return n, err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return n, err
}

// processorTime is what a process has used, in user mode and in the kernel, by the clock of its CPU
// time: "~pid << 3 | 2" of clock_getcpuclockid(3) as Linux has it.
func processorTime(pid int) (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|2), &t)
	return time.Duration(t.Nano()), err
}

// mostMemory is the most memory that a process has had, in bytes: VmHWM of proc_pid_status(5).
func mostMemory(pid int) (int64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	f := strings.Fields(rest)
	if len(f) == 0 {
		return 0, errors.New("no VmHWM in /proc")
	}
	kib, err := strconv.ParseInt(f[0], 10, 64)
	return kib << 10, err
}

// fetchRanges fetches the image imageTurns times, as agents do: several connections that stay open,
// each asking for one range after the other.
func fetchRanges(ctx context.Context, url string) (int64, error) {
	size, err := sizeOf(ctx, url)
	if err != nil {
		return 0, err
	}
	g, ctx := errgroup.WithContext(ctx)
	var sums [streams]int64
	for i := range streams {
		g.Go(func() error {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
			defer client.CloseIdleConnections()
			for range imageTurns {
				for at := int64(i) * rangeSize; at < size; at += streams * rangeSize {
					n, err := fetchRange(ctx, client, url, at, min(at+rangeSize, size))
					if err != nil {
						return err
					}
					sums[i] += n
				}
			}
			return nil
		})
	}
	err = g.Wait()
	var n int64
	for _, s := range sums {
		n += s
	}
	return n, err
}

func sizeOf(ctx context.Context, url string) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", url, res.Status)
	}
	return res.ContentLength, nil
}

func fetchRange(ctx context.Context, client *http.Client, url string, from, to int64) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, to-1))
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusPartialContent {
		return 0, fmt.Errorf("%s: %s", url, res.Status)
	}
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil && n != to-from {
		err = fmt.Errorf("%s: %d bytes instead of %d", url, n, to-from)
	}
	return n, err
}

// fetchLoaders fetches the loader often, some transfers at once, each of a client of its own with one
// block and one acknowledgement at a time (RFC 1350, with the option blksize of RFC 2348), as firmware does.
func fetchLoaders(ctx context.Context, address string, atOnce int) (sum int64, err error) {
	g, ctx := errgroup.WithContext(ctx)
	sums := make([]int64, atOnce)
	for i := range atOnce {
		g.Go(func() error {
			for range max(1, loads/atOnce) {
				n, err := fetchLoader(ctx, net.IPv4(127, 0, 1, byte(1+i)), address)
				if sums[i] += n; err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = g.Wait()
	for _, n := range sums {
		sum += n
	}
	return sum, err
}

func fetchLoader(ctx context.Context, from net.IP, address string) (n int64, err error) {
	to, err := net.ResolveUDPAddr("udp4", address)
	if err != nil {
		return 0, err
	}
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: from})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	ask := []byte("\x00\x01" + loader.IPXE + "\x00octet\x00blksize\x00" + strconv.Itoa(blockSize) + "\x00")
	b := make([]byte, 2048)
	answer := ask
	for ctx.Err() == nil {
		if _, err := conn.WriteToUDP(answer, to); err != nil {
			return n, err
		}
		if err := conn.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
			return n, err
		}
		k, from, err := conn.ReadFromUDP(b)
		if err != nil {
			return n, err
		}
		switch to = from; {
		case k >= 4 && b[1] == 3: // data
			n += int64(k - 4)
			answer = []byte{0, 4, b[2], b[3]}
			if k-4 < blockSize {
				_, err := conn.WriteToUDP(answer, to)
				return n, err
			}
		case k >= 2 && b[1] == 6: // options
			answer = []byte{0, 4, 0, 0}
		default:
			return n, fmt.Errorf("tftp: %q", b[:k])
		}
	}
	return n, ctx.Err()
}
