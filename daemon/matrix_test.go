package daemon

import (
	"testing"

	"clove.run/clove/api"
)

// passes stands for every answer that does not depend on the caller.
const passes = api.Code(0)

// row has the answers for root, for the run's owner, and for another member of the group.
// Others cannot connect.
type row struct {
	root, owner, member api.Code
	params              string // besides the run's name; "-": it names none
}

var (
	forAll   = row{passes, passes, passes, "-"}
	forOwner = row{passes, passes, api.CodeNotFound, ""}
	forRoot  = row{passes, api.CodeDenied, api.CodeDenied, "-"}
	forAgent = row{api.CodeDenied, api.CodeDenied, api.CodeDenied, "-"} // the agent alone
)

// with returns a row for a method that needs more parameters than a run.
func (r row) with(params string) row { r.params = params; return r }

// matrix is the access matrix of the whole contract, written by hand.
var matrix = map[string]row{
	api.MethodInfo:   forAll,
	api.MethodReload: forRoot,
	api.MethodDrain:  forRoot,
	api.MethodPanic:  forRoot.with(`-"clear":true`),
	api.MethodBackup: forRoot.with(`-"file":"/"`),
	api.MethodCheck:  forRoot,
	api.MethodDebug:  forRoot.with(`-"part":"versions"`),
	api.MethodGuard:  forRoot.with(`-"guard":{"directory":"/run/one","pid":7,"start":1,"network":"none","rules":[]}`),
	api.MethodCancel: forAll.with(`-"id":"none"`),

	api.MethodContainer: forRoot.with(`-"container":{"id":"one","directory":"/run/one"},"record":{"version":1,"id":"one","status":"exited","started":"2026-01-02T12:00:00Z"}`),

	api.MethodRunStart:  forAll.with("-start"),
	api.MethodRunList:   forAll,
	api.MethodRunPrune:  forAll,
	api.MethodRunGet:    forOwner,
	api.MethodRunWait:   forOwner,
	api.MethodRunRemove: forOwner,
	api.MethodRunRename: forOwner.with(`,"name":"renamed"`),

	api.MethodRunStop:      forOwner,
	api.MethodRunSignal:    forOwner.with(`,"signal":1`),
	api.MethodRunRestart:   forOwner,
	api.MethodRunPause:     forOwner,
	api.MethodRunResume:    forOwner,
	api.MethodRunUpdate:    forOwner.with(`,"update":{}`),
	api.MethodRunStats:     forOwner,
	api.MethodRunProcesses: forOwner,

	api.MethodRunLogs:    forOwner,
	api.MethodRunAttach:  forOwner,
	api.MethodRunExec:    forOwner.with(`,"exec":{"command":["true"]}`),
	api.MethodRunCopyIn:  forOwner.with(`,"path":"/"`),
	api.MethodRunCopyOut: forOwner.with(`,"path":"/"`),
	api.MethodRunDiff:    forOwner,
	api.MethodRunApply:   forOwner,

	// GRANT, RESERVATION, ID and RUNNAME are of what the run has, see rig.shares.
	api.MethodAgentGet:    forOwner,
	api.MethodAgentListen: forAgent,

	api.MethodGrantList:   forOwner,
	api.MethodGrantCheck:  forOwner.with(`,"what":"tool:fetch"`),
	api.MethodGrantGive:   forOwner.with(`,"grant":"tool:fetch"`),
	api.MethodGrantDerive: forOwner.with(`,"from":"GRANT","grant":"tool:fetch"`),
	api.MethodGrantRevoke: forOwner.with(`,"id":"GRANT"`),

	api.MethodBudgetGet:     forOwner,
	api.MethodModelQueue:    forOwner,
	api.MethodBudgetReserve: forOwner.with(`,"amounts":{"reviews":1}`),
	api.MethodBudgetSettle:  forOwner.with(`,"reservation":"RESERVATION","amounts":{"reviews":1}`),
	api.MethodBudgetRelease: forOwner.with(`,"reservation":"RESERVATION"`),
	api.MethodBudgetCharge:  forOwner.with(`,"amounts":{"reviews":1}`),
	api.MethodBudgetRaise:   forOwner.with(`,"amounts":{"reviews":1}`),
	api.MethodBudgetReset:   forOwner.with(`,"dimensions":["reviews"]`),
	api.MethodBudgetSet:     row{passes, passes, api.CodeDenied, `-"account":"64001/name:RUNNAME","limits":["reviews=1"]`},
	api.MethodBudgetList:    forAll,
	api.MethodBudgetReport:  forAll,
	api.MethodBudgetTop:     forAll,

	api.MethodModelList:   forAll,
	api.MethodModelPrices: forAll,
	api.MethodModelTest:   row{api.CodeNotFound, api.CodeDenied, api.CodeDenied, `-"model":"none"`},
	api.MethodModelTop:    forAll,

	api.MethodAuditQuery: forAll,
	api.MethodAuditRead:  forOwner.with(`,"namespace":"acme"`),

	api.MethodKernelAttach: forRoot.with(`-"run":"ID"`),
	api.MethodKernelCall:   forRoot.with(`-"run":"ID","method":"agent.get"`),
	api.MethodKernelMeter:  forRoot.with(`-"run":"ID","start":1,"totals":{"cpu_ms":1}`),

	api.MethodEventFollow: forAll,
}

// TestMatrixIsComplete: each method has a row.
func TestMatrixIsComplete(t *testing.T) {
	t.Parallel()
	for _, m := range api.Methods {
		if _, there := matrix[m.Name]; !there {
			t.Errorf("%s has no row in the access matrix", m.Name)
		}
	}
	for name := range matrix {
		if _, known := api.Find(name); !known {
			t.Errorf("%s has a row and is no method", name)
		}
	}
}
