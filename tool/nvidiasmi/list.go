// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

var (
	listed   = lazyregexp.New(`^\s*GPU (\d+): (.*?) \(UUID: ([^()\s]+)\)\s*$`)
	listedIn = lazyregexp.New(`(?m)^\s*GPU \d+: .* \(UUID: [^()\s]+\)\s*$`)
	migPart  = lazyregexp.New(`^\s*MIG (\S+)\s+Device\s+(\d+): \(UUID: ([^()\s]+)\)\s*$`)
	linkIn   = lazyregexp.New(`(?m)^\s*Link \d+[:,]`)
	listTorn = lazyregexp.New(`^\s*(?:GPU \d+: |MIG \S+ )`)
)

// errList says that there is no list of GPUs.
var errList = errors.New(`no line "GPU 0: NAME (UUID: ...)" in it`)

func isList(b []byte) int {
	begin := b[:min(len(b), 64<<10)]
	if !listedIn.Match(begin) || linkIn.Match(begin) || infoIn.Match(begin) || bytes.Contains(begin, []byte("proc'd: ")) { // gpu_burn lists GPUs first
		return 0
	}
	return 85
}

// ParseList reads nvidia-smi -L.
func ParseList(b []byte) (Log, tool.Problems, error) {
	var log Log
	var p tool.Problems
	seen := map[int]bool{}
	eachLine(b, func(n int, line string) {
		if m := listed.FindStringSubmatch(line); m != nil {
			i, err := strconv.Atoi(m[1])
			if err != nil || seen[i] {
				p.Add(tool.Inconsistent, n, "GPU %s is there twice", m[1])
				return
			}
			if seen[i] = true; i != len(log.GPUs) {
				p.Add(tool.Missing, n, "GPU %d follows %d GPUs: one is left out", i, len(log.GPUs))
			}
			log.GPUs = append(log.GPUs, GPU{Index: i, Name: m[2], UUID: m[3]})
			return
		}
		if m := migPart.FindStringSubmatch(line); m != nil && len(log.GPUs) > 0 {
			i, _ := strconv.Atoi(m[2])
			g := &log.GPUs[len(log.GPUs)-1]
			g.MIGDevices = append(g.MIGDevices, MIGDevice{Profile: m[1], Index: i, UUID: m[3]})
			return
		}
		if !noteComplaint(n, line, &p) && listTorn.MatchString(line) {
			p.Add(tool.Truncated, n, "the line ends before its UUID")
		}
	})
	if len(log.GPUs) == 0 {
		return Log{}, p, errList
	}
	return log, p, nil
}
