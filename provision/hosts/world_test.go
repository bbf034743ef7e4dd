// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/provision/remote"
)

// agentDir is where the agent was built; empty: no test has needed it.
var agentDir string

// buildAgent builds the agent once for all tests.
var buildAgent = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "ironrail-agent-")
	if err != nil {
		return "", err
	}
	agentDir = dir
	bin := filepath.Join(dir, "ironrail-agent")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin, "github.com/ironrail/ironrail/cmd/ironrail-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return bin, nil
})

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	code := m.Run()
	if agentDir != "" {
		_ = os.RemoveAll(agentDir)
	}
	os.Exit(code)
}

// machine is what a host of the tests shows: /sys, and the programs of its PATH.
type machine struct {
	sys      map[string]string // files below /sys
	links    map[string]string // symbolic links below /sys
	programs map[string]string // shell scripts, by name
	shm      string            // mount options of /dev/shm
	user     string            // an account beside those of this computer
}

// Two GPUs of the parsers' fixture, a switch, two rails of 400 Gb/s and a disk.
const (
	root = "devices/pci0000:15/0000:15:01.0/0000:16:00.0/"
	gpu0 = root + "0000:17:00.0/0000:19:00.0"
	hca0 = root + "0000:17:01.0/0000:1a:00.0"
	gpu1 = root + "0000:17:02.0/0000:3b:00.0"
	hca1 = root + "0000:17:03.0/0000:3c:00.0"
	nvme = "devices/pci0000:50/0000:50:01.0/0000:51:00.0"
)

// newMachine is a host that is well.
func newMachine(t testing.TB, serial string) *machine {
	t.Helper()
	m := &machine{sys: map[string]string{}, links: map[string]string{}, programs: map[string]string{}}
	for name, text := range map[string]string{"sys_vendor": "Supermicro", "product_name": "SYS-821GE-TNHR", "product_serial": serial, "bios_version": "2.1"} {
		m.sys["class/dmi/id/"+name] = text
	}
	for cpu := range 4 {
		m.sys[fmt.Sprintf("devices/system/cpu/cpu%d/topology/physical_package_id", cpu)] = fmt.Sprint(cpu / 2)
		m.sys[fmt.Sprintf("devices/system/cpu/cpu%d/topology/core_id", cpu)] = fmt.Sprint(cpu % 2)
	}
	m.sys["devices/system/clocksource/clocksource0/current_clocksource"] = "tsc"
	m.sys["devices/system/edac/mc/mc0/ue_count"], m.sys["devices/system/edac/mc/mc0/ce_count"] = "0", "0"
	m.sys["firmware/efi/fw_platform_size"] = "64"
	for _, at := range []string{gpu0, gpu1} {
		m.function(at, "0x030200", "0x10de", "0x2330", "16")
	}
	for i, at := range []string{hca0, hca1} {
		m.function(at, "0x020700", "0x15b3", "0x1021", "16")
		m.rail(at, i)
	}
	m.function(nvme, "0x010802", "0x144d", "0xa80a", "4")
	m.sys[nvme+"/nvme/nvme0/nvme0n1/size"] = "7501476528"
	m.sys[nvme+"/nvme/nvme0/nvme0n1/device/model"] = "SAMSUNG MZQL23T8HCLS-00A07"
	m.links["block/nvme0n1"] = "../" + nvme + "/nvme/nvme0/nvme0n1"
	m.script("nvidia-smi", `case "$*" in
"-q -x") cat "$0.xml" ;;
"nvlink -s") cat "$0.links" ;;
"nvlink -e") cat "$0.errors" ;;
*) echo "unexpected: $*" >&2; exit 2 ;;
esac`)
	m.programs["nvidia-smi.xml"] = goodGPUs(t)
	m.programs["nvidia-smi.links"], m.programs["nvidia-smi.errors"] = nvlinks("26.562 GB/s"), nvlinks("Replay Errors: 0")
	m.script("journalctl", `echo "2026-11-27T01:00:00+0000 host kernel: Linux version 6.8.0"`)
	m.script("chronyc", `echo "0A000001,10.0.0.1,3,1764208800.0,0.000012,0.000001,0.00002,1.0,0.0,0.1,0.001,0.001,64.0,Normal"`)
	return m
}

// process is one that uses a GPU, as nvidia-smi shows it.
var process = regexp.MustCompile(`(?s)<process_info>.*?</process_info>`)

// goodGPUs are GPUs that are well and that nobody uses.
func goodGPUs(t testing.TB) string {
	t.Helper()
	used := usedGPUs(t)
	if !process.MatchString(used) {
		t.Fatal("the fixture has no process")
	}
	return process.ReplaceAllString(used, "")
}

// fixture is an output of a parser's tests.
func fixture(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../tool/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// usedGPUs is the fixture of nvidia-smi's parser, with its second GPU made well.
func usedGPUs(t testing.TB) string {
	t.Helper()
	return strings.NewReplacer("<remapped_row_pending>Yes<", "<remapped_row_pending>No<", ">Reset<", ">None<", "<remapped_row_unc>2<", "<remapped_row_unc>0<",
		"<sram_uncorrectable_parity>2<", "<sram_uncorrectable_parity>0<", "<dram_uncorrectable>2<", "<dram_uncorrectable>0<", ">8x<", ">16x<").Replace(fixture(t, "nvidiasmi/testdata/h100.xml"))
}

// nvlinks is an output of nvidia-smi nvlink for two GPUs of 18 links.
func nvlinks(text string) string {
	var b strings.Builder
	for gpu := range 2 {
		fmt.Fprintf(&b, "GPU %d: NVIDIA H100 80GB HBM3 (UUID: GPU-%d)\n", gpu, gpu)
		for link := range 18 {
			fmt.Fprintf(&b, "\t Link %d: %s\n", link, text)
		}
	}
	return b.String()
}

func (m *machine) script(name, body string) {
	m.programs[name] = "#!/bin/sh\n" + body + "\n"
}

// function adds a PCI function with its whole link.
func (m *machine) function(at, class, vendor, device, width string) {
	address := filepath.Base(at)
	for name, text := range map[string]string{"class": class, "vendor": vendor, "device": device, "current_link_width": width, "max_link_width": width,
		"current_link_speed": "32.0 GT/s PCIe", "max_link_speed": "32.0 GT/s PCIe", "aer_dev_fatal": "TOTAL_ERR_FATAL 0", "aer_dev_nonfatal": "TOTAL_ERR_NONFATAL 0", "numa_node": "0"} {
		m.sys[at+"/"+name] = text
	}
	m.links["bus/pci/devices/"+address] = "../../../" + at
}

// rail makes a function an RDMA port that is up.
func (m *machine) rail(at string, i int) {
	dev := fmt.Sprintf("mlx5_%d", i)
	dir := at + "/infiniband/" + dev
	for name, text := range map[string]string{"fw_ver": "28.43.1014", "board_id": "MT_0000000838", "ports/1/state": "4: ACTIVE", "ports/1/phys_state": "5: LinkUp",
		"ports/1/rate": "400 Gb/sec (4X NDR)", "ports/1/link_layer": "InfiniBand", "ports/1/counters/link_downed": "0"} {
		m.sys[dir+"/"+name] = text
	}
	m.links[dir+"/device"] = "../../../" + filepath.Base(at)
	m.links["class/infiniband/"+dev] = "../../" + dir
}

// write puts the machine's files below dir: sys and bin.
func (m *machine) write(t testing.TB, dir string) {
	t.Helper()
	put := func(path, text string, mode fs.FileMode) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range m.sys {
		put(filepath.Join(dir, "sys", name), text+"\n", 0o644)
	}
	for name, to := range m.links {
		path := filepath.Join(dir, "sys", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	if m.user != "" {
		for file, line := range map[string]string{"passwd": m.user + ":x:54321:54321::/nonexistent:/bin/sh\n", "shadow": m.user + ":*:19000:0:99999:7:::\n"} {
			own, err := os.ReadFile("/etc/" + file)
			if err != nil {
				t.Fatal(err)
			}
			put(filepath.Join(dir, file), string(own)+line, 0o644)
		}
	}
	for name, text := range m.programs {
		if local, is := strings.CutPrefix(name, "/usr/local/bin/"); is {
			put(filepath.Join(dir, "local", local), text, 0o755)
			continue
		}
		put(filepath.Join(dir, "bin", name), text, 0o755)
	}
}

// peer is a running sshd with a machine of its own below it: its /sys is that of the
// machine, all file systems are read-only but four that are empty and in memory.
type peer struct {
	dir     string
	host    Host
	hostKey ssh.Signer
	pid     int
}

// writable are the folders in which a host can be written to.
var writable = []string{"dev/shm", "tmp", "var/tmp", "root"}

const enter = `set -e
mount --make-rprivate /
mount --bind "$1/sys" /sys
for d in /tmp /var/tmp /root; do mount -t tmpfs -o mode=1777 ironrail-test "$d"; done
mount -t tmpfs -o "mode=1777$2" ironrail-test /dev/shm
for f in passwd shadow; do
	if [ -f "$1/$f" ]; then mount --bind "$1/$f" "/etc/$f"; fi
done
if [ -d "$1/local" ]; then mount --bind "$1/local" /usr/local/bin; fi
mount -o remount,bind,ro /
exec /usr/sbin/sshd -D -e -f "$1/config"`

// world is hosts, and what is needed to log in to them.
type world struct {
	t      testing.TB
	dir    string
	client string // file of our key
	peers  []*peer
}

func newWorld(t testing.TB) *world {
	t.Helper()
	peertest.Need(t, "/usr/sbin/sshd", "unshare", "mount")
	if os.Geteuid() != 0 {
		t.Skip("needs root: each host has a /sys of its own")
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Skipf("/run/sshd: %v", err)
	}
	// Outside of /tmp, which hosts have for themselves.
	dir, err := os.MkdirTemp("/var/lib", "ironrail-hosts-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // other users read authorized keys and programs
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, client: filepath.Join(dir, "key")}
	signer, file, err := remote.GenerateClientKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"key": string(file), "authorized": remote.AuthorizedKey(signer, "test")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), map[string]fs.FileMode{"key": 0o600, "authorized": 0o644}[name]); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// start starts an sshd for a machine.
func (w *world) start(name string, m *machine) *peer {
	w.t.Helper()
	dir := filepath.Join(w.dir, name)
	m.write(w.t, dir)
	host, file, err := remote.GenerateClientKey()
	if err != nil {
		w.t.Fatal(err)
	}
	if block, _ := pem.Decode(file); block == nil {
		w.t.Fatal("key is no PEM")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	config := fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/authorized\nPidFile none\nStrictModes no\nUsePAM no\n"+
		"PasswordAuthentication no\nPermitRootLogin prohibit-password\nPrintLastLog no\nSetEnv PATH=%s/bin:/usr/bin:/bin\n", port, dir, w.dir, dir)
	for name, text := range map[string]string{"host": string(file), "config": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	p := &peer{dir: dir, hostKey: host, host: Host{Name: name, Addr: "127.0.0.1", Port: uint16(port)}}
	p.pid = w.run(dir, m.shm)
	w.peers = append(w.peers, p)
	return p
}

// run starts the daemon in a mount namespace of its own, and returns its process.
func (w *world) run(dir, shm string) int {
	w.t.Helper()
	cmd := exec.Command("unshare", "--mount", "sh", "-c", enter, "sh", dir, shm)
	log, err := cmd.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	in := bufio.NewReader(log)
	var all strings.Builder
	for {
		line, err := in.ReadString('\n')
		all.WriteString(line)
		if strings.HasPrefix(line, "Server listening") {
			go func() { _, _ = io.Copy(io.Discard, in) }() // ends with the daemon
			return cmd.Process.Pid
		}
		if err != nil {
			w.t.Fatalf("sshd does not start: %v\n%s", err, all.String())
		}
	}
}

// files lists what stands in the folders of a host that can be written to.
func (p *peer) files(t testing.TB) []string {
	t.Helper()
	list := []string{}
	for _, dir := range writable {
		root := fmt.Sprintf("/proc/%d/root/%s", p.pid, dir)
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && path != root {
				list = append(list, strings.TrimPrefix(path, fmt.Sprintf("/proc/%d/root", p.pid)))
			}
			return nil // it may go while we look
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(list)
	return list
}

func fingerprint(s ssh.Signer) string { return ssh.FingerprintSHA256(s.PublicKey()) }

// processes are those of a host, with their names: they see its files.
func (p *peer) processes(t testing.TB) map[int]string {
	t.Helper()
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", p.pid))
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("/proc/[0-9]*/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	list := map[int]string{}
	for _, path := range names {
		if ns, err := os.Readlink(path); err != nil || ns != own {
			continue // it has ended, or is of another host
		}
		dir := filepath.Dir(filepath.Dir(path))
		comm, err := os.ReadFile(filepath.Join(dir, "comm"))
		pid, errPID := strconv.Atoi(filepath.Base(dir))
		if err == nil && errPID == nil {
			list[pid] = strings.TrimSpace(string(comm))
		}
	}
	return list
}

// awaitNothing waits until a host has no file that it had not, and no process but its
// sshd.
func (p *peer) awaitNothing(t testing.TB) {
	t.Helper()
	for {
		files, left := p.files(t), p.processes(t)
		for pid, name := range left {
			if strings.HasPrefix(name, "sshd") {
				delete(left, pid)
			}
		}
		if len(files) == 0 && len(left) == 0 {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("%s: remains %v, %v", p.host.Name, files, left)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
