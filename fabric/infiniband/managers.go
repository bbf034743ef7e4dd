// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// managerState is the state of a subnet manager, in sminfo's words.
type managerState string

// The states of a subnet manager (IBTA, SMInfo). A silent one is in the master's list
// and does not answer itself.
const (
	isMaster      managerState = "MASTER"
	isStandby     managerState = "STANDBY"
	isDiscovering managerState = "DISCOVER"
	isSilent      managerState = "silent"
)

// SM is one subnet manager on a fabric.
type SM struct {
	LID      int
	GUID     addr.GUID // of the port that it runs on
	Priority int
	state    managerState
}

// Bounds of a look at the managers of a fabric: a handover takes a sweep, and of a
// fabric whose switches all run a manager the first ones say enough.
const (
	handoverLimit = 20 * time.Second
	handoverEvery = 2 * time.Second
	mostManagers  = 16
)

var infoLine = lazyregexp.New(`sm lid (\d+) sm guid (0x[0-9a-f]+), activity count \d+ priority (\d+) state \d+ SMINFO_(\w+)`)

// info asks one subnet manager: the fabric's master, or by the address in args.
func (s *Subnet) info(ctx context.Context, args ...string) (m SM, err error) {
	out, err := runDiagnostic(ctx, s.Host, append([]string{"sminfo"}, args...)...)
	if err != nil {
		return m, err
	}
	w := infoLine.FindStringSubmatch(string(out))
	if w == nil {
		return m, errkind.New(errkind.Internal, "fabric %s: sminfo is not understood: %q", s.Fabric.Name, out)
	}
	if m.GUID, err = readGUID(w[2]); err != nil {
		return m, errkind.New(errkind.Internal, "fabric %s: sminfo is not understood: %w", s.Fabric.Name, err)
	}
	m.LID, _ = strconv.Atoi(w[1]) // digits
	m.Priority, _ = strconv.Atoi(w[3])
	m.state = managerState(w[4])
	return m, nil
}

// managers are all that the master knows of, each asked itself: what the master knows
// is as old as its last sweep.
func (s *Subnet) managers(ctx context.Context) ([]SM, error) {
	out, err := runDiagnostic(ctx, s.Host, "saquery", "SMIR")
	if err != nil {
		return nil, err
	}
	list, err := readManagers(out)
	if err != nil {
		return nil, errkind.New(errkind.Internal, "fabric %s: saquery SMIR is not understood: %w", s.Fabric.Name, err)
	}
	for i := range list[:min(len(list), mostManagers)] {
		now, err := s.info(ctx, strconv.Itoa(list[i].LID))
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			list[i].state = isSilent
		default:
			list[i].state, list[i].Priority = now.state, now.Priority
		}
	}
	return list, nil
}

// readManagers reads what `saquery SMIR` prints: a record of each manager, a field a
// line, name and value with dots between.
func readManagers(text []byte) (list []SM, err error) {
	states := map[string]managerState{"0": "NOTACT", "1": isDiscovering, "2": isStandby, "3": isMaster}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "SMInfoRecord dump") {
			list = append(list, SM{})
			continue
		}
		name, value, ok := strings.Cut(line, "..")
		if value = strings.TrimLeft(value, "."); !ok || len(list) == 0 || err != nil {
			continue
		}
		m := &list[len(list)-1]
		switch name {
		case "LID":
			m.LID, err = strconv.Atoi(value)
		case "GUID":
			m.GUID, err = readGUID(value)
		case "Priority":
			m.Priority, err = strconv.Atoi(value)
		case "SMState":
			m.state = states[value]
		}
	}
	if i := slices.IndexFunc(list, func(m SM) bool { return m.LID == 0 || m.GUID == 0 }); err == nil && i >= 0 {
		err = fmt.Errorf("record %d has no LID or no GUID", i+1)
	}
	return list, cmp.Or(err, lines.Err())
}

// readGUID reads a GUID that may lack its leading zeros, as sminfo prints it.
func readGUID(text string) (addr.GUID, error) {
	v, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	return addr.GUID(v), err
}
