// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Component is one entry of the firmware inventory.
type Component struct {
	ID, Name, Version string
	Updateable        bool
}

// Components reads the firmware inventory. An entry that cannot be read is left
// out: DGX H100 answers 403 to some now and then.
func (c *Client) Components(ctx context.Context) ([]Component, error) {
	u, err := c.updates(ctx)
	if err != nil {
		return nil, err
	}
	all, err := c.members(ctx, u.FirmwareInventory.or(c.root.UpdateService.or(rootPath+"UpdateService")+"/FirmwareInventory"), maxSensors)
	if err != nil {
		return nil, err
	}
	var out []Component
	for _, l := range all {
		var f struct {
			ID            text `json:"Id"`
			Name, Version text
			Updateable    bool
		}
		if _, err := c.get(ctx, string(l), &f); err != nil {
			if _, ok := asFault(err); ok && errkind.Of(err) != errkind.Auth {
				continue
			}
			return nil, err
		}
		out = append(out, Component{ID: OneLine(string(f.ID)), Name: OneLine(string(f.Name)), Version: OneLine(string(f.Version)), Updateable: f.Updateable})
	}
	return out, nil
}

// updateService is what is read of the UpdateService.
type updateService struct {
	FirmwareInventory link
	Actions           struct {
		Simple action `json:"#UpdateService.SimpleUpdate"`
	}
}

func (c *Client) updates(ctx context.Context) (updateService, error) {
	var u updateService
	if _, err := c.where(ctx); err != nil {
		return u, err
	}
	_, err := c.get(ctx, c.root.UpdateService.or(rootPath+"UpdateService"), &u)
	return u, err
}

// Update is a request for new firmware.
type Update struct {
	Image string   // URL of the image, which the BMC fetches
	IDs   []string // components that it is for; none: the image says it
}

// StartUpdate makes the BMC fetch and install an image; it returns the path of
// the task, or "" where the service did everything before it answered.
func (c *Client) StartUpdate(ctx context.Context, up Update) (task string, err error) {
	u, err := c.updates(ctx)
	if err != nil {
		return "", err
	}
	target, ok := cleanPath(string(u.Actions.Simple.Target))
	if !ok {
		return "", unsupported("way to update firmware from a URL")
	}
	body := map[string]any{"ImageURI": up.Image}
	if scheme, _, ok := strings.Cut(up.Image, ":"); ok {
		body["TransferProtocol"] = strings.ToUpper(scheme)
	}
	var at []string
	for _, id := range up.IDs {
		at = append(at, u.FirmwareInventory.or(rootPath+"UpdateService/FirmwareInventory")+"/"+id)
	}
	if len(at) > 0 {
		body["Targets"] = at
	}
	a, err := c.post(ctx, target, body)
	if err != nil {
		return "", err
	}
	return a.task(), nil
}

// taskPoll is the time between two looks at a task.
const taskPoll = 5 * time.Second

// taskEnds are the states in which a task does not change any more (schema Task,
// TaskState); the value says whether it went well. "Failed" is in no schema and is
// seen on Supermicro.
var taskEnds = map[string]bool{"Completed": true, "Exception": false, "Killed": false, "Cancelled": false, "Failed": false}

// WaitTask waits for a task to end, within ctx. path is the task or its monitor,
// which shows the task while it runs and then the answer to the request; XCC
// deletes a finished task when its monitor is read.
func (c *Client) WaitTask(ctx context.Context, path string) error {
	for seen := false; ; {
		ended, err := c.taskEnded(ctx, path)
		switch {
		case seen && isStatus(err, http.StatusNotFound):
			return nil // ended and gone
		case err == nil && ended:
			return nil
		case err == nil:
			seen = true
		case errkind.Of(err) != errkind.Timeout && errkind.Of(err) != errkind.Unreachable:
			return err // the others pass: a BMC that updates itself restarts
		}
		if err := c.cfg.Clock.Sleep(ctx, taskPoll); err != nil {
			return classify(ctx, err)
		}
	}
}

// taskEnded looks at a task once; a task that ended badly is an error.
func (c *Client) taskEnded(ctx context.Context, path string) (bool, error) {
	a, err := c.do(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return false, err
	}
	var t struct {
		TaskState text
		Messages  []struct{ Message text }
	}
	if len(a.body) > 0 {
		if err := a.decode(&t); err != nil {
			return false, err
		}
	}
	if t.TaskState == "" {
		return a.status != http.StatusAccepted, nil // a monitor
	}
	good, ended := taskEnds[string(t.TaskState)]
	if !ended || good {
		return ended, nil
	}
	why := ""
	if n := len(t.Messages); n > 0 {
		why = ": " + OneLine(string(t.Messages[n-1].Message))
	}
	return true, errkind.New(errkind.Refused, "the task ended as %s%s", OneLine(string(t.TaskState)), why)
}
