// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Op is what a client can ask for.
type Op string

// The operations of the control socket.
const (
	OpChassis Op = "chassis" // ipmi_sim's program; answers in milliseconds
	OpStatus  Op = "status"
	OpStats   Op = "stats"
	OpFault   Op = "fault"
	OpStop    Op = "stop" // switch all off and end; answered before it happens
)

// Request is one JSON object, the only one of its connection.
type Request struct {
	Op      Op            `json:"op"`
	Machine string        `json:"machine,omitempty"`
	Args    []string      `json:"args,omitempty"`
	Fault   *FaultRequest `json:"fault,omitempty"`
}

// Response answers it.
type Response struct {
	Text   string            `json:"text,omitempty"` // of a chassis program
	Status *Status           `json:"status,omitempty"`
	Stats  map[string]*Stats `json:"stats,omitempty"`
	Error  string            `json:"error,omitempty"`
	Kind   errkind.Kind      `json:"kind,omitempty"`
	Action string            `json:"action,omitempty"`
}

// Status is a lab as it stands.
type Status struct {
	Name     string          `json:"name"`
	Dir      string          `json:"dir"`
	PID      int             `json:"pid"`
	Ready    bool            `json:"ready"` // every BMC has answered since the start
	Machines []MachineStatus `json:"machines"`
}

// MachineStatus is one machine as it stands.
type MachineStatus struct {
	Name     string `json:"name"`
	Hardware string `json:"hardware"`
	BMC      string `json:"bmc"`
	Power    bool   `json:"power"`   // as the BMC says: what was asked for
	Running  bool   `json:"running"` // QEMU runs
	PID      int    `json:"pid,omitempty"`
	Boot     string `json:"boot"` // the boot device asked for and not used yet
	Faults   Faults `json:"faults"`
	Console  string `json:"console"`
}

// requestTimeout bounds one connection; an injected fault calls tc a few times.
const requestTimeout = 30 * time.Second

// maxRequest bounds one request.
const maxRequest = 64 << 10

// control answers clients until the socket is closed.
func (s *Supervisor) control(ctx context.Context, l net.Listener, all *sync.WaitGroup) {
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() == nil {
				s.slog.Error("control socket", "err", err)
			}
			return
		}
		all.Go(func() { s.answer(ctx, conn) })
	}
}

func (s *Supervisor) answer(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	var req Request
	if err := json.NewDecoder(io.LimitReader(conn, maxRequest)).Decode(&req); err != nil {
		return // a client that hung up, or one that we do not understand
	}
	res, err := s.handle(ctx, req)
	if err != nil {
		res = Response{Error: err.Error(), Kind: errkind.Of(err), Action: errkind.Action(err)}
	}
	if err := json.NewEncoder(conn).Encode(res); err != nil {
		s.slog.Error("control socket: answer", "op", string(req.Op), "err", err)
	}
	if req.Op == OpStop {
		s.stop()
	}
}

func (s *Supervisor) handle(ctx context.Context, req Request) (Response, error) {
	switch req.Op {
	case OpChassis:
		m, err := s.machine(req.Machine)
		if err != nil {
			return Response{}, err
		}
		text, err := m.chassis(req.Args)
		return Response{Text: text}, err
	case OpStatus:
		return Response{Status: s.status()}, nil
	case OpStats:
		stats, err := s.stats(ctx)
		return Response{Stats: stats}, err
	case OpFault:
		return Response{}, s.fault(ctx, req.Fault)
	case OpStop:
		return Response{}, nil
	}
	return Response{}, errkind.New(errkind.Unsupported, "operation %q is not known", req.Op)
}

func (s *Supervisor) fault(ctx context.Context, r *FaultRequest) error {
	if r == nil {
		return errkind.New(errkind.Refused, "fault: nothing asked for")
	}
	if r.Name == "clear" && r.Machine == "" {
		var errs []error
		for _, m := range s.machines {
			errs = append(errs, s.inject(ctx, m, *r))
		}
		return errors.Join(errs...)
	}
	m, err := s.machine(r.Machine)
	if err != nil {
		return err
	}
	return s.inject(ctx, m, *r)
}

func (s *Supervisor) status() *Status {
	st := &Status{Name: s.lab.Name, Dir: s.lab.Dir, PID: os.Getpid()}
	select {
	case <-s.ready:
		st.Ready = true
	default:
	}
	for _, m := range s.machines {
		st.Machines = append(st.Machines, m.status())
	}
	return st
}

func (m *machine) status() MachineStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := MachineStatus{
		Name: m.Name, Hardware: string(m.Hardware), BMC: m.BMCAddress.String(), Power: m.wanted,
		Boot: m.order.Asked(), Faults: m.faults, Console: m.files.Console,
	}
	if m.vm != nil {
		st.Running, st.PID = true, m.vm.cmd.Process.Pid
	}
	return st
}

// stats are the counts of the effects file, with what the running machines have
// written since their start on top.
func (s *Supervisor) stats(ctx context.Context) (map[string]*Stats, error) {
	effects, err := ReadEffects(s.lab.Effects())
	if err != nil {
		return nil, err
	}
	counts := CountEffects(effects)
	for _, m := range s.machines {
		st := counts[m.Name]
		if st == nil {
			st = newStats()
			counts[m.Name] = st
		}
		v := m.current()
		if v == nil {
			continue
		}
		if bytes, writes, err := v.written(ctx); err == nil {
			st.Disk.WrittenBytes += bytes
			st.Disk.Writes += writes
		}
	}
	return counts, nil
}

// Call sends one request to the supervisor behind the socket. An error of the
// supervisor comes back with its kind and next action.
func Call(ctx context.Context, socket string, req Request) (Response, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return Response{}, errkind.New(errkind.Unreachable, "supervisor: %w", err).Do("start the lab with ironrail-lab up")
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return Response{}, err
		}
	}
	if err := json.NewEncoder(conn).Encode(req); err != nil {
		return Response{}, errkind.New(errkind.Unreachable, "supervisor: %s: %w", req.Op, err)
	}
	var res Response
	if err := json.NewDecoder(conn).Decode(&res); err != nil {
		return res, errkind.New(errkind.Timeout, "supervisor: %s: no answer: %w", req.Op, err).Do("read supervisor.log in the state folder")
	}
	if res.Error != "" {
		return res, errkind.New(res.Kind, "%s", res.Error).Do(res.Action)
	}
	return res, nil
}
