package api

// Sender says who sends a notification.
type Sender string

// The senders.
const (
	FromClove  Sender = "clove"
	FromCaller Sender = "caller" // in a session
)

// Notification is one row of the table of notifications.
type Notification struct {
	Name     string
	From     Sender
	ForAgent bool // it comes on an agent's own socket, after agent.listen
	Params   any  // a zero value of the type
}

// Notifications are those of streams and sessions, then those of agents.
var Notifications = []Notification{
	{NoteLogLine, FromClove, false, LogNote{}},
	{NoteChange, FromClove, false, ChangeNote{}},
	{NoteEvent, FromClove, false, EventNote{}},
	{NoteOutput, FromClove, false, SessionOutput{}},
	{NoteInput, FromCaller, false, SessionInput{}},
	{NoteCloseInput, FromCaller, false, Nothing{}},
	{NoteResize, FromCaller, false, SessionSize{}},
	{NoteDetach, FromCaller, false, Nothing{}},
	{NoteTaken, FromClove, false, Nothing{}},
	{NoteSignal, FromCaller, false, SessionSignal{}},
	{NoteCloseOutput, FromCaller, false, SessionStream{}},
	{NoteStanding, FromClove, false, StandingNote{}},
	{NoteAuditRecord, FromClove, false, AuditRecordNote{}},

	{NoteBudgetWarning, FromClove, true, BudgetNote{}},
	{NoteBudgetPause, FromClove, true, BudgetNote{}},
	{NoteGrantsChanged, FromClove, true, GrantsNote{}},
	{NoteOffer, FromClove, true, OfferNote{}},
	{NoteAccepted, FromClove, true, AcceptedNote{}},
	{NoteLost, FromClove, true, LostNote{}},
}
