package agent

import "testing"

// TestNoProcessIsMoreThanTheAgent: an exec session may be root only if the agent is, and needs
// valid ids.
func TestNoProcessIsMoreThanTheAgent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		agent uint32
		user  *User
		taken bool
	}{
		{1000, nil, true}, {1000, &User{UID: 1234, GID: 1234}, true}, {0, &User{}, true}, {0, &User{UID: 1000, GID: 1000}, true},
		{1000, &User{}, false}, {1000, &User{UID: 1234}, false}, {1000, &User{GID: 5}, false},
		{1000, &User{UID: InitUID, GID: 1}, false}, {0, &User{UID: 1, GID: InitUID}, false},
	} {
		s := Spec{User: User{UID: c.agent}}
		if err := s.CheckExec(Exec{User: c.user}); (err == nil) != c.taken {
			t.Errorf("%+v beside an agent with id %d: %v", c.user, c.agent, err)
		}
	}
}
