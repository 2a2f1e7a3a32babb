import { z } from 'zod'
import { Attached } from '../envelope.ts'
import { Refusal } from '../errors.ts'
import { BATCH_ITEMS_MAX, isSilent, type RoundMessages } from '../sessions/batch.ts'

/** secp256k1 has three; the most that one side can say before it must hear the other is two. */
const ROUNDS_MAX = 3

/**
 * Messages of rounds, after each other: of each round, item and message how many of the attached
 * bytes it takes.
 */
export const lengthsSchema = z
  .array(z.array(z.array(z.int().min(0)).max(4)).max(BATCH_ITEMS_MAX))
  .max(ROUNDS_MAX)

/** A body with the messages of rounds beside it. Rounds in which nothing is said are left out. */
export function withRounds(
  body: Record<string, unknown>,
  rounds: readonly RoundMessages[],
): Attached {
  const spoken = rounds.filter((round) => !isSilent(round))
  return new Attached(
    {
      ...body,
      messages: spoken.map((round) => round.map((list) => list.map((each) => each.length))),
    },
    Buffer.concat(spoken.flat(2)),
  )
}

/** @throws Refusal SESSION_ABORTED where the lengths are not those of the bytes */
export function roundsOf(lengths: z.infer<typeof lengthsSchema>, bytes: Buffer): RoundMessages[] {
  let end = 0
  const rounds = lengths.map((round) =>
    round.map((list) => list.map((length) => bytes.subarray(end, (end += length)))),
  )
  if (end !== bytes.length)
    throw new Refusal('SESSION_ABORTED', 'The messages have different lengths')
  return rounds
}
