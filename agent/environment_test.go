package agent

import (
	"slices"
	"testing"
)

func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		"API_TOKEN=x":                        "API_TOKEN=(redacted)",
		"api_key=x":                          "api_key=(redacted)",
		"AWS_SECRET_ACCESS_KEY=a=b":          "AWS_SECRET_ACCESS_KEY=(redacted)",
		"githubToken=x":                      "githubToken=(redacted)",
		"DB_PWD=x":                           "DB_PWD=(redacted)",
		"PGPASSWORD=x":                       "PGPASSWORD=(redacted)",
		"DATABASE_URL=postgres://u:p@db/x":   "DATABASE_URL=postgres://u:(redacted)@db/x",
		"URLS=a://u:p@q@x/ https://:p@y:1/z": "URLS=a://u:(redacted)@x/ https://:(redacted)@y:1/z",
		"TOKEN=":                             "TOKEN=",
		"PWD=/workspace":                     "PWD=/workspace",
		"OLDPWD=/x":                          "OLDPWD=/x",
		"KEYBOARD=us":                        "KEYBOARD=us",
		"PATH=/usr/bin:/bin":                 "PATH=/usr/bin:/bin",
		"PROXY=http://proxy:3128/":           "PROXY=http://proxy:3128/",
		"AUTHOR=me":                          "AUTHOR=me",
	} {
		run := Run{Spec: Spec{Env: []string{entry}}}
		if got := run.WithoutSecrets().Spec.Env; !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %q", entry, got, want)
		}
		if run.Spec.Env[0] != entry || run.WithoutEnv().Spec.Env != nil {
			t.Errorf("%s: the run itself was changed, or is listed with it", entry)
		}
	}
}
