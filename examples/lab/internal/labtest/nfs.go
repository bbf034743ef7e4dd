// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// NFSServer is nfs-ganesha, which serves one folder to the lab's network.
type NFSServer struct {
	Folder string // what it serves
	t      *testing.T
	pid    int
}

// ServeNFS serves an empty folder as /NAME by NFS 4 at an address of the lab's controller until
// the test ends.
func (l *Lab) ServeNFS(address, name string) *NFSServer {
	l.t.Helper()
	dir := filepath.Join(l.dir, "nfs")
	s := &NFSServer{Folder: filepath.Join(dir, name), t: l.t}
	for _, sub := range []string{s.Folder, filepath.Join(dir, "recovery")} {
		if err := os.MkdirAll(sub, 0o755); err != nil {
			l.t.Fatal(err)
		}
	}
	conf, pid := filepath.Join(dir, "ganesha.conf"), filepath.Join(dir, "pid")
	text := fmt.Sprintf(`NFS_CORE_PARAM { Protocols = 4; Bind_addr = %s; Enable_NLM = false; Enable_RQUOTA = false; }
NFSV4 { Graceless = true; RecoveryBackend = fs; RecoveryRoot = %s/recovery; }
EXPORT { Export_Id = 1; Path = %s; Pseudo = /%s; Access_Type = RW; Squash = No_Root_Squash; SecType = sys; FSAL { Name = VFS; } }
`, address, dir, s.Folder, name)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
	if out := l.Inside("ganesha.nfsd", "-f", conf, "-L", filepath.Join(dir, "log"), "-p", pid, "-N", "NIV_EVENT"); out.Code != 0 {
		l.t.Fatalf("nfs-ganesha: %s", out)
	}
	if out := l.Inside("sh", "-c", `for i in $(seq 60); do test -s "$1" && ss -Htln sport = :2049 | grep -q . && exit 0; sleep 0.5; done; exit 1`, "sh", pid); out.Code != 0 {
		log, _ := os.ReadFile(filepath.Join(dir, "log")) // what it says, if anything
		l.t.Fatalf("nfs-ganesha does not serve: %s\n%s", out, log)
	}
	b, err := os.ReadFile(pid)
	if err != nil {
		l.t.Fatal(err)
	}
	if s.pid, err = strconv.Atoi(strings.TrimSpace(string(b))); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(s.Stop)
	return s
}

// Stop ends the server at once, as a power cut would; what is stopped already stays so.
func (s *NFSServer) Stop() {
	if s.pid == 0 {
		return
	}
	if err := syscall.Kill(s.pid, syscall.SIGKILL); err != nil {
		s.t.Errorf("end nfs-ganesha, process %d: %v", s.pid, err)
	}
	s.pid = 0
}
