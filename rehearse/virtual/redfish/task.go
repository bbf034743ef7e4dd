// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// maxTasks is how many tasks are remembered; the oldest go first.
const maxTasks = 64

// task is something that takes its time.
type task struct {
	id, name string
	state    string // of DSP2046 TaskState; "Pending" of a config task is derived
	start    time.Time
	end      time.Time // expected while it runs, actual afterwards
	text     string    // what there is to say at its end
	config   bool      // BIOS settings that wait for the next POST
}

// newTask begins a task in the state New.
func (s *server) newTask(name string) *task {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &task{id: fmt.Sprintf(s.p.TaskName, s.lastTask), name: name, state: "New", start: s.clock.Now()}
	t.end = t.start
	s.lastTask++
	if len(s.tasks) >= maxTasks {
		s.tasks = slices.Delete(s.tasks, 0, 1)
	}
	s.tasks = append(s.tasks, t)
	return t
}

// setTask changes a task.
func (s *server) setTask(t *task, change func(*task)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(t)
}

// finishTask ends a task.
func (s *server) finishTask(t *task, state, text string) {
	s.setTask(t, func(t *task) { t.state, t.text, t.end = state, text, s.clock.Now() })
}

func (s *server) taskURI(id string) string { return joinURI("TaskService", "Tasks", id) }

// task finds a task and returns a copy of it as it stands now.
func (s *server) task(id string) (task, bool) {
	_, pending := s.c.BIOS()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		if t.id != id {
			continue
		}
		if t.config && t.state == "Pending" && pending == nil {
			t.state, t.text, t.end = "Completed", "Job completed successfully.", s.clock.Now()
		}
		return *t, true
	}
	return task{}, false
}

// over reports whether a task has ended.
func (t task) over() bool {
	return t.state == "Completed" || t.state == "Exception" || t.state == "Killed"
}

// percent is how much of the expected time has gone.
func (t task) percent(now time.Time) int {
	switch whole := t.end.Sub(t.start); {
	case t.over():
		return 100
	case whole <= 0:
		return 0
	default:
		return int(min(99, 100*now.Sub(t.start)/whole))
	}
}

func (s *server) showTask(t task) obj {
	status := "OK"
	if t.state == "Exception" {
		status = "Critical"
	}
	o := obj{"@odata.type": "#Task.v1_5_1.Task", "@odata.id": s.taskURI(t.id), "Id": t.id, "Name": t.name, "TaskState": t.state, "TaskStatus": status,
		"StartTime": formatTime(t.start), "PercentComplete": t.percent(s.clock.Now()), "TaskMonitor": s.monitor(t.id), "Messages": []obj{}}
	if t.over() {
		o["EndTime"] = formatTime(t.end)
	}
	if t.text != "" {
		severity := "OK"
		if status != "OK" {
			severity = "Critical"
		}
		o["Messages"] = []obj{s.info(message{id: "Task.1.0." + t.state, text: t.text, severity: severity, resolution: "None."})}
	}
	return o
}

// monitor is the URI of a task's monitor.
func (s *server) monitor(id string) string { return joinURI(fmt.Sprintf(s.p.Monitor, id)) }

func taskService(c *call) obj {
	return obj{"@odata.type": "#TaskService.v1_2_0.TaskService", "Id": "TaskService", "Name": "Task Service", "ServiceEnabled": true,
		volatile: formatTime(c.s.clock.Now()), "CompletedTaskOverWritePolicy": "Oldest", "LifeCycleEventOnTaskStateChange": false,
		"Status": statusOK(), "Tasks": linkTo("TaskService", "Tasks")}
}

func (s *server) taskIDs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return collectIDs(s.tasks, func(_ int, t *task) string { return t.id })
}

func getTasks(c *call) obj { return c.collection("Task", "Task Collection", c.s.taskIDs()) }

func getTask(c *call) obj {
	t, found := c.s.task(c.args[0])
	if !found {
		return nil
	}
	return c.s.showTask(t)
}

// getMonitor answers 202 while the task runs (DSP0266, 12.2).
func getMonitor(c *call) {
	t, found := c.s.task(c.args[0])
	switch {
	case !found:
		c.missing()
	case t.over():
		c.send(http.StatusOK, c.s.showTask(t))
	default:
		c.w.Header().Set("Location", c.s.monitor(t.id))
		c.w.Header().Set("Retry-After", "10")
		c.send(http.StatusAccepted, c.s.showTask(t))
	}
}

// jobStates are Dell's words for the states of tasks.
var jobStates = map[string]string{
	"New": "New", "Running": "Running", "Pending": "Scheduled", "Completed": "Completed", "Exception": "Failed",
}

// getJobs are the tasks once more in Dell's dress.
func getJobs(c *call) obj {
	if !c.s.p.ConfigJobs {
		return nil
	}
	return c.collection("DellJob", "JobQueue", c.s.taskIDs())
}

func getJob(c *call) obj {
	t, found := c.s.task(c.args[0])
	if !found || !c.s.p.ConfigJobs {
		return nil
	}
	kind := "FirmwareUpdate"
	if t.config {
		kind = "BIOSConfiguration"
	}
	return obj{"@odata.type": "#DellJob.v1_4_0.DellJob", "Id": t.id, "Name": t.name, "JobState": jobStates[t.state], "JobType": kind,
		"PercentComplete": t.percent(c.s.clock.Now()), "StartTime": formatTime(t.start), "Message": t.text}
}

// postJob makes the job for settings that were sent without one.
func postJob(c *call) {
	if !c.s.p.ConfigJobs {
		c.missing()
		return
	}
	o, ok := c.body()
	if !ok {
		return
	}
	target, has, ok := c.text(o, "TargetSettingsURI")
	switch {
	case !ok:
	case !has:
		c.fail("PropertyMissing", "TargetSettingsURI")
	case target != joinURI("Systems", c.s.p.System, "Bios", c.s.p.Settings):
		c.fail("PropertyValueNotInList", target, "TargetSettingsURI")
	default:
		c.commit()
	}
}
