import type { Approvals } from '../document/people.ts'
import type { PolicyDocument } from '../document/shape.ts'
import { durationText } from './words.ts'

const quorum = (approvals: Approvals): string =>
  approvals.map(({ group, k }) => `${k} of ${group}`).join(' and ')

/** Returns the rules of a document about itself and about what operators enter, as sentences. */
export function governanceSentences({
  change,
  stop,
  resume,
  enrolment,
  orders,
  fees,
}: PolicyDocument): string[] {
  const time =
    change.delay_s === 0 ? 'is in force at once' : `waits ${durationText(change.delay_s)}`
  const optional = (what: string, needs: { approvals: Approvals } | undefined): string[] =>
    needs ? [`${what} requires ${quorum(needs.approvals)}.`] : []
  return [
    `A change of the policy requires ${quorum(change.approvals)} and ${time}. Each member of ${change.veto} can veto it.`,
    `Each member of ${stop.group} can stop all signing. The end of a stop requires ${quorum(resume.approvals)}.`,
    ...optional('The enrolment of an API key', enrolment),
    ...optional('A drain or a stake of a gas tank', orders),
    ...(fees ? ['Fees that a gas tank pays count in no window.'] : []),
  ]
}
