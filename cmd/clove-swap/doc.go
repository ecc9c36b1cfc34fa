// Command clove-swap drops all privileges, then serves one side of egress/swap: outer, which reads what an agent
// sends and holds no secret, or inner, which holds the secrets and reads nothing that the agent wrote. The first message
// says which. clove starts it as clove-gate, with its channel as descriptor 3 and the channel to the other side
// as descriptor 4.
package main
