package mail

import (
	"strings"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/service"
)

// topicPrefix begins the names of topics. The runs that hold one are its subscribers.
const topicPrefix = "topic/"

// topicMethods are those about topics. One message is paid for, whatever the number of its copies.
func (m Mail) topicMethods() []service.Method {
	subscribe := service.Stages[api.MailTopicParams]{About: func(p api.MailTopicParams) string { return topicPrefix + p.Topic },
		Covers: func(p api.MailTopicParams) []string {
			return []string{string(grant.Name) + ":" + topicPrefix + p.Topic}
		}}
	publish := service.Stages[api.MailPublishParams]{About: func(p api.MailPublishParams) string { return topicPrefix + p.Topic },
		Covers: func(p api.MailPublishParams) []string {
			return []string{string(grant.Send) + ":" + topicPrefix + p.Topic}
		},
		Costs: func(api.MailPublishParams) (budget.Amounts, error) {
			return budget.Amounts{budget.Messages: 1}, nil
		}}
	return []service.Method{service.Write(agents.MailSubscribe, subscribe, m.subscribe), service.Write(agents.MailUnsubscribe, service.Stages[api.MailTopicParams]{}, m.unsubscribe),
		service.Write(agents.MailPublish, publish, m.publish)}
}

func (m Mail) subscribe(c *service.Call, p api.MailTopicParams) (none api.Nothing, out service.Outcome, err error) {
	out.About = topicPrefix + p.Topic
	return none, out, m.Subscribers.Join(c, out.About)
}

func (m Mail) unsubscribe(c *service.Call, p api.MailTopicParams) (none api.Nothing, out service.Outcome, err error) {
	out.About = topicPrefix + p.Topic
	return none, out, m.Subscribers.Leave(c, out.About)
}

func (m Mail) publish(c *service.Call, p api.MailPublishParams) (result api.MailPublishResult, out service.Outcome, err error) {
	out.About = topicPrefix + p.Topic
	message, err := m.messageOf(c, c.Run.Owner.UID, api.MailSendParams{To: out.About, Body: p.Body, Blob: p.Blob, Priority: p.Priority, ExpiresMS: p.ExpiresMS, Trace: p.Trace})
	if err != nil {
		return result, out, err
	}
	result.Trace = message.Trace
	runs, _, err := m.Names.Holders(c, c.Run.Owner.UID, c.Run.Spec.Kernel.Namespace, out.About)
	for _, run := range runs {
		if err != nil {
			return result, out, err
		}
		one := *message
		_, out, err = put(c, run, &one, out)
		switch {
		case err == nil:
			result.Delivered++
		case api.ErrorOf(err).Data.Rule == api.RuleMailbox && !p.FailOnFull:
			result.Full, err = result.Full+1, nil
		}
	}
	out.Object = "" // each copy has its own
	return result, out, err
}

// noTopic refuses a topic or a queue of jobs where one receiver is meant.
func noTopic(to string) error {
	if strings.HasPrefix(to, "job/") {
		return api.Failure(api.CodeParams, "an agent with a grant send:job/QUEUE calls job.add", "%.64q is a queue of jobs", to)
	}
	if !strings.HasPrefix(to, topicPrefix) {
		return nil
	}
	return api.Failure(api.CodeParams, "an agent with a grant send:topic/T calls mail.publish", "%.64q is a topic", to)
}
