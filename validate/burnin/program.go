// SPDX-License-Identifier: Apache-2.0

package burnin

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/dcgmi"
	"github.com/ironrail/ironrail/tool/rvs"
)

// program takes the verdict of the program that loaded the GPUs.
func (j *judging) program() {
	if j.load.Vendor == "amd" {
		j.rvs()
		return
	}
	j.dcgmi()
}

// programText is the end of what a program printed, for evidence.
func (j *judging) programText() string {
	text := strings.TrimSpace(j.Result.Output + "\n" + j.Result.Errors)
	lines := strings.Split(text, "\n")
	last := lines[max(0, len(lines)-3):]
	return fmt.Sprintf("%s: exit status %d: %s", j.load.Program, j.Result.Exit, strings.Join(last, " / "))
}

// dcgmi reads `dcgmi diag -j`.
func (j *judging) dcgmi() {
	c, problems, err := dcgmi.Parse([]byte(j.Result.Output))
	if err != nil {
		j.fail("burn-in program", doRun, j.programText(), "dcgmi says nothing of a test")
		return
	}
	judged := false
	for _, t := range c.Tests {
		for _, r := range t.Results {
			switch {
			case r.Status == dcgmi.Pass:
				judged = judged || !strings.EqualFold(t.Category, deployment)
			case r.Status == dcgmi.Fail || r.Status == dcgmi.Warn && len(r.Warnings) > 0:
				judged = true
				j.fail(j.entity(r.Entities), doWrong, fmt.Sprintf("dcgmi diag, test %s: %s", t.Name, strings.Join(r.Warnings, "; ")), "it failed DCGM's test %q under load", t.Name)
			}
		}
	}
	var failed []string // it says more than once why
	for _, p := range problems {
		if p.Kind == tool.Failed {
			failed = append(failed, p.Text)
		}
	}
	switch {
	case judged:
		j.untested(c)
	case len(failed) > 0:
		j.fail("burn-in program", doRun, "dcgmi: "+strings.Join(failed, "; "), "dcgmi could not load the GPUs")
	default:
		j.fail("burn-in program", doRun, j.programText(), "dcgmi loaded no GPU")
	}
}

// entity is what to call a GPU as DCGM numbers it, "GPU 3" or "3".
func (j *judging) entity(text string) string {
	number, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(text, "GPU")))
	if err != nil {
		return "GPUs"
	}
	if at := j.addressOf(number); at != "" {
		return j.Names[at]
	}
	return fmt.Sprintf("GPU %d", number)
}

// addressOf is where the GPU is that DCGM numbers so: its order is that of nvidia-smi. Empty:
// nobody has told.
func (j *judging) addressOf(number int) string {
	for _, at := range sortedKeys(j.Names) {
		if strings.HasPrefix(j.Names[at], fmt.Sprintf("GPU %d at ", number)) {
			return at
		}
	}
	return ""
}

// Rate is what a GPU computed, GFLOPS.
type Rate struct {
	Mean float64 `json:"mean"`
	Best float64 `json:"best"` // of half a minute, by which AMD judges; the mean where only that is said
}

// Rates returns what each GPU computed, by address; nothing of those of which the program did
// not say it.
func Rates(load Load, s Seen) map[string]Rate {
	j, all := &judging{Seen: s, load: load}, map[string]Rate{}
	if load.Vendor == "amd" {
		c, _ := rvs.ParseStress([]byte(s.Result.Output)) // an error: there is no GPU in it
		for _, g := range c.GPUs {
			if at := s.Result.KFD[strconv.Itoa(g.ID)]; at != "" && g.GFLOPS > 0 {
				all[at] = Rate{cmp.Or(g.Mean, g.GFLOPS), g.GFLOPS}
			}
		}
		return all
	}
	c, _, _ := dcgmi.Parse([]byte(s.Result.Output)) // likewise
	for number, rate := range c.GFLOPS() {
		if at := j.addressOf(number); at != "" {
			all[at] = Rate{rate, rate}
		}
	}
	return all
}

// rvs reads what module gst printed.
func (j *judging) rvs() {
	c, err := rvs.ParseStress([]byte(j.Result.Output))
	if err != nil {
		j.fail("burn-in program", doRun, j.programText(), "rvs says nothing of a GPU")
		return
	}
	tested := map[string]bool{}
	for _, g := range c.GPUs {
		part, id := "GPU "+strconv.Itoa(g.ID)+" of rvs", strconv.Itoa(g.ID)
		if at := j.Result.KFD[id]; at != "" {
			part, tested[at] = j.part(at), true
		}
		switch {
		case g.Wrong > 0:
			j.fail(part, doWrong, fmt.Sprintf("rvs gst: self check: %d results differ from the one before", g.Wrong), "it computed other results from the same numbers under load")
		case !g.Done:
			j.fail(part, doRun, j.programText(), "rvs did not end its work on it")
		case g.GFLOPS <= 0:
			j.fail(part, doWrong, "rvs gst: 0 GFLOPS", "it computed nothing under load")
		case g.GFLOPS < j.load.Least:
			j.fail(part, DoPace, fmt.Sprintf("rvs gst: %.0f GFLOPS at most, %.0f on average", g.GFLOPS, g.Mean),
				"it computed %.0f GFLOPS at most under load: AMD asks %.0f of %s", g.GFLOPS, j.load.Least, j.load.Model)
		}
	}
	j.unloaded(len(c.GPUs), tested, fmt.Sprintf("rvs gst: results of %d GPUs", len(c.GPUs)))
	if len(c.Errors) > 0 {
		j.fail("burn-in program", doRun, c.Errors[0], "rvs reports %d errors", len(c.Errors))
	}
}
