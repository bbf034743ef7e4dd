package rvs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/tooltest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	c, problems, err := Parse([]byte(tooltest.Sample(t, "rvs.txt")))
	if err != nil {
		t.Fatal(err)
	}
	tooltest.None(t, problems)
	if len(c.GPUs) != 2 || c.GPUs[1] != (GPU{23018, "0000:26:00.0"}) {
		t.Errorf("GPUs %+v", c.GPUs)
	}
	if len(c.Memory) != 2 || c.Memory[0] != (Memory{28851, "Copy", 4125120.5 * (1 << 20)}) {
		t.Errorf("memory %+v", c.Memory)
	}
	if len(c.Host) != 2 || c.Host[0] != (Host{"to-gpu", 0, 28851, "0000:05:00.0", true, false, 55.664e9}) {
		t.Errorf("host %+v", c.Host)
	}
	if len(c.Peers) != 2 || c.Peers[1] != (Peer{"peers", GPU{23018, "0000:26:00.0"}, GPU{28851, "0000:05:00.0"}, false, 48.914e9}) {
		t.Errorf("peers %+v", c.Peers)
	}
	if got := strings.Join(c.Summary(), "; "); got != "ROCm Validation Suite, 2 GPUs; host, to-gpu: 55.66 to 55.70 GB/s; memory, Copy: 4317.25 to 4325.50 GB/s; peers, peers: 48.91 to 48.96 GB/s" {
		t.Errorf("summary %s", got)
	}
}

// TestNewerTable: since ROCm 7.2 the columns behind the first are rates, and the
// units may be decimal.
func TestNewerTable(t *testing.T) {
	t.Parallel()
	c, problems, err := Parse([]byte("GPU Id      Function    MBytes/sec     Max MB/s       Min MB/s       Avg MB/s       \n" +
		"7           Triad       3885301.000    3885301.000    3880000.000    3884000.000    \n"))
	if err != nil || len(problems) != 0 || len(c.Memory) != 1 || c.Memory[0] != (Memory{7, "Triad", 3885301e6}) {
		t.Errorf("%v, %v, %+v", err, problems, c)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	sample := tooltest.Sample(t, "rvs.txt")
	for _, c := range []struct {
		name, from, to string
		kind           tool.ProblemKind
		line           int
		text           string
	}{
		{"cut", sample[strings.Index(sample, "[RESULT] [  4447"):], "", tool.Truncated, 0, "peers has 1 figures of 2"},
		{"nothing measured", "55.701 GBps", "(not measured)", tool.Failed, 24, "nothing was measured"},
		{"table without rows", "28851       Copy        4125120.500 0.00050     0.00052     0.00050     \n", "", tool.Truncated, 0, "no rows"},
		{"an error", "[RESULT] [  4416.610745]", "[ERROR ] [  4416.610745]", tool.Failed, 21, "[ERROR ]"},
	} {
		if !strings.Contains(sample, c.from) {
			t.Fatalf("%s: the sample has no %q", c.name, c.from)
		}
		_, problems, err := Parse([]byte(strings.Replace(sample, c.from, c.to, 1)))
		if err != nil {
			t.Fatal(err)
		}
		tooltest.Want(t, problems, c.kind, c.line, c.text)
	}
	if _, _, err := Parse([]byte("nothing")); err == nil {
		t.Error("nothing is read as something")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(tooltest.Sample(f, "rvs.txt")))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := Parse(data)
		if err != nil {
			return
		}
		if _, err := json.Marshal(c); err != nil || len(c.Summary()) == 0 {
			t.Error(err)
		}
	})
}
