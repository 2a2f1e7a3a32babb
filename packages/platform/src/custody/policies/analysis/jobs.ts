import { policyRegistry, type Registry } from '@custody/chains'
import {
  compile,
  diff,
  lint,
  simulate,
  type Act,
  type Difference,
  type Finding,
  type PastAct,
  type PolicyDocument,
  type Simulation,
} from '@custody/policy'
import type { Surroundings } from '../lint-surroundings.ts'
import { stoppedRules } from '../standing-rules.ts'

/** Lints a document that was checked, and compares it with the one in force. */
interface ReviewJob {
  kind: 'review'
  next: PolicyDocument
  previous: PolicyDocument
  surroundings: Surroundings
}
/** Replays the past with a document that was checked. `current`: null if none is in force. */
interface SimulateJob {
  kind: 'simulate'
  next: PolicyDocument
  current: PolicyDocument | null
  acts: readonly PastAct[]
  /** Smallest forwards of the standing rules. */
  forwards: readonly Act[]
}
/** A job of the analysis thread. The processor time that it needs depends on its documents. */
export type Job = ReviewJob | SimulateJob

interface Results {
  review: { findings: readonly Finding[]; differences: readonly Difference[] }
  simulate: { simulation: Simulation; stopped: readonly string[] }
}
export type ResultOf<J extends Job> = Results[J['kind']]

/** Does a job. @throws PolicyError if an act contradicts itself */
export function work(registry: Registry, job: Job): Results[Job['kind']] {
  const judged = policyRegistry(registry)
  if (job.kind === 'review') {
    const { next, previous, surroundings } = job
    return {
      findings: lint(next, { registry: judged, previous, ...surroundings }),
      differences: diff(previous, next),
    }
  }
  const next = compile(job.next, judged)
  const current = job.current && compile(job.current, judged)
  return {
    simulation: simulate(next, current, job.acts),
    stopped: stoppedRules(registry, next, job.forwards),
  }
}
