import { loadRegistry, type Registry } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import { parentPort, workerData } from 'node:worker_threads'
import { work, type Job } from './jobs.ts'

// The analysis thread: does one job after the other, and answers each with its result or its error.
/** Returns a response to the thread that sent the job. */
function answer(value: object): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- the port of a thread has no origin
  parentPort?.postMessage(value)
}

const registry = loadRegistry(workerData as Parameters<typeof loadRegistry>[0]) as Registry
parentPort?.on('message', (job: Job) => {
  const begun = performance.now()
  try {
    const result = work(registry, job)
    answer({ result, ms: performance.now() - begun })
  } catch (error) {
    answer({ error: reasonOf(error) })
  }
})
