//go:build root

package engines

import "testing"

// dockerDefault makes clove the default runtime, also for the steps of a build, and lets
// containers outlive their daemon.
func dockerDefault(t *testing.T) {
	const config = `{"default-runtime": "clove", "live-restore": true, ` + dockerNames + `}`
	const lives = dockerPrelude + "trap - EXIT\n"
	first := startDocker(t, config)
	want(t, `clove\nbuilt`, dockerPrelude+`
		printf 'FROM %s\nRUN echo built >/srv/made\n' $I >/run/Dockerfile
		DOCKER_BUILDKIT=0 docker build -q -t clove.test/made:1 - </run/Dockerfile >/dev/null
		docker create --name $N clove.test/made:1 cat /srv/made >/dev/null; docker inspect -f '{{.HostConfig.Runtime}}' $N; docker start -a $N`)
	want(t, `up`, lives+`docker run -d --name $N $I obey >/dev/null; grep -m1 up < <(docker logs -f $N)`)
	first.stop(t)
	startDocker(t, config)
	want(t, `again\nup\ngot TERM\n3`, lives+`docker exec $N echo again; docker stop $N >/dev/null; docker logs $N; docker wait $N; docker rm $N >/dev/null`)
}
