// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/tool/mlnxqos"
)

// toolTime is how long one call of a program may take.
const toolTime = 20 * time.Second

// Tools is the QoS of real NICs: by mlnx_qos of mlnx-tools where it is installed
// and the NIC is NVIDIA's, else by dcb of iproute2, which speaks to every driver
// with DCB. The traffic class of connections is a file of the kernel. Source:
// mlnx_qos and cma_roce_tos of Mellanox/mlnx-tools, the manual pages dcb-app(8)
// and dcb-pfc(8), and Documentation/ABI/testing/configfs-rdma_cm of Linux.
type Tools struct {
	Root string                                                    // of the files, "/" on a node
	Run  func(ctx context.Context, argv ...string) ([]byte, error) // a program's standard output; fs.ErrNotExist: it is not installed
}

// Sorting implements QoS.
func (t Tools) Sorting(netdev, device string) (wire.RoCESorting, error) {
	s := wire.RoCESorting{TrafficClass: -1}
	ctx, cancel := context.WithTimeout(context.Background(), toolTime)
	defer cancel()
	var err error
	if t.nvidia(netdev) {
		err = t.mlnxQoS(ctx, netdev, &s)
	}
	if !t.nvidia(netdev) || errors.Is(err, fs.ErrNotExist) {
		err = t.dcb(ctx, netdev, &s)
	}
	if err != nil {
		return s, err
	}
	if text, err := os.ReadFile(t.tosFile(device)); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			s.TrafficClass = n
		}
	}
	return s, nil
}

// nvidia reports whether an interface is of the driver that mlnx_qos knows.
func (t Tools) nvidia(netdev string) bool {
	target, err := os.Readlink(filepath.Join(t.Root, "sys/class/net", netdev, "device/driver"))
	return err == nil && filepath.Base(target) == "mlx5_core"
}

func (t Tools) mlnxQoS(ctx context.Context, netdev string, s *wire.RoCESorting) error {
	out, err := t.Run(ctx, "mlnx_qos", "-i", netdev)
	if err != nil {
		return err
	}
	q, _, err := mlnxqos.Parse(out)
	if err != nil {
		return fmt.Errorf("mlnx_qos of %s: %w", netdev, err)
	}
	s.Trust, s.Paused = q.Trust, q.Paused()
	for d := range 64 {
		if p, known := q.Priority(d); known {
			s.Set(d, p)
		}
	}
	return nil
}

// dcb reads the tables that dcb shows. A NIC with an entry for a DSCP trusts it.
func (t Tools) dcb(ctx context.Context, netdev string, s *wire.RoCESorting) error {
	var app struct {
		Table [][]int `json:"dscp_prio"`
	}
	if err := t.json(ctx, &app, "dcb", "-N", "-j", "app", "show", "dev", netdev, "dscp-prio"); err != nil {
		return err
	}
	for _, e := range app.Table {
		if len(e) == 2 {
			s.Set(e[0], e[1])
			s.Trust = "dscp"
		}
	}
	var pfc struct {
		Table []any `json:"prio_pfc"`
	}
	if err := t.json(ctx, &pfc, "dcb", "-j", "pfc", "show", "dev", netdev, "prio-pfc"); err != nil {
		return err
	}
	for p, on := range pfc.Table {
		if on == true || on == "on" || on == 1.0 {
			s.Paused = append(s.Paused, p)
		}
	}
	return nil
}

func (t Tools) json(ctx context.Context, into any, argv ...string) error {
	out, err := t.Run(ctx, argv...)
	if errors.Is(err, fs.ErrNotExist) {
		return errkind.New(errkind.Unsupported, "neither mlnx_qos nor dcb is installed").Do("Install iproute2 5.11 or later, or mlnx-tools.")
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return nil
}

// SetSorting implements QoS.
func (t Tools) SetSorting(netdev, device string, want wire.RoCELossless) error {
	ctx, cancel := context.WithTimeout(context.Background(), toolTime)
	defer cancel()
	err := fs.ErrNotExist
	if t.nvidia(netdev) {
		err = t.runAll(ctx, mlnxArgv(netdev, want))
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = t.runAll(ctx, dcbArgv(netdev, want))
	}
	if err != nil {
		return err
	}
	return t.setTrafficClass(device, want.TrafficClass)
}

func (t Tools) runAll(ctx context.Context, all [][]string) error {
	for _, argv := range all {
		if _, err := t.Run(ctx, argv...); err != nil {
			return err
		}
	}
	return nil
}

// mlnxArgv are the calls of mlnx_qos.
func mlnxArgv(netdev string, want wire.RoCELossless) [][]string {
	var pfc []string
	for p := range 8 {
		on := "0"
		if want.PFC && p == want.Priority {
			on = "1"
		}
		pfc = append(pfc, on)
	}
	return [][]string{
		{"mlnx_qos", "-i", netdev, "--trust", "dscp"},
		{"mlnx_qos", "-i", netdev, "--dscp2prio", fmt.Sprintf("set,%d,%d", want.DSCP, want.Priority)},
		{"mlnx_qos", "-i", netdev, "--dscp2prio", fmt.Sprintf("set,%d,%d", want.CNP, want.CNPPriority)},
		{"mlnx_qos", "-i", netdev, "--pfc", strings.Join(pfc, ",")},
	}
}

// dcbArgv are the calls of dcb.
func dcbArgv(netdev string, want wire.RoCELossless) [][]string {
	pfc := []string{"dcb", "pfc", "set", "dev", netdev, "prio-pfc", "all:off"}
	if want.PFC {
		pfc = append(pfc, fmt.Sprintf("%d:on", want.Priority))
	}
	return [][]string{
		{"dcb", "app", "replace", "dev", netdev, "dscp-prio", fmt.Sprintf("%d:%d", want.DSCP, want.Priority), fmt.Sprintf("%d:%d", want.CNP, want.CNPPriority)},
		pfc,
	}
}

// tosFile is where the kernel has the traffic class of connections of a device.
func (t Tools) tosFile(device string) string {
	return filepath.Join(t.Root, "sys/kernel/config/rdma_cm", device, "ports/1/default_roce_tos")
}

// setTrafficClass sets the class of what connects by rdma_cm, and, where NVIDIA's
// own driver has it, of every queue pair that the kernel makes ready.
func (t Tools) setTrafficClass(device string, class int) error {
	file := t.tosFile(device)
	if err := os.Mkdir(filepath.Join(t.Root, "sys/kernel/config/rdma_cm", device), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return errkind.New(errkind.Unsupported, "traffic class of %s: %w", device, err).Do("Load the module rdma_cm and mount configfs at /sys/kernel/config.")
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(class)), 0o644); err != nil {
		return fmt.Errorf("traffic class of %s: %w", device, err)
	}
	all := filepath.Join(t.Root, "sys/class/infiniband", device, "tc/1/traffic_class")
	if _, err := os.Stat(all); err == nil {
		if err := os.WriteFile(all, []byte(strconv.Itoa(class)), 0o644); err != nil {
			return fmt.Errorf("traffic class of %s: %w", device, err)
		}
	}
	return nil
}
