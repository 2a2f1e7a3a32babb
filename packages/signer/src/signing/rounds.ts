import { z } from 'zod'
import { Attached } from '../envelope.ts'
import { Refusal } from '../errors.ts'
import { BATCH_ITEMS_MAX, isSilent, type RoundMessages } from '../sessions/batch.ts'

/**
 * secp256k1 has three rounds; one side can compute at most two before it needs the other's
 * messages.
 */
const ROUNDS_MAX = 3

/** Lengths of the concatenated messages in the attached bytes, by round, item and message. */
export const lengthsSchema = z
  .array(z.array(z.array(z.int().min(0)).max(4)).max(BATCH_ITEMS_MAX))
  .max(ROUNDS_MAX)

/**
 * Returns a body with the messages of rounds as attached bytes. Rounds without messages are left
 * out.
 */
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

/**
 * Splits the attached bytes into messages.
 * @throws Refusal SESSION_ABORTED if the lengths do not match the bytes
 */
export function roundsOf(lengths: z.infer<typeof lengthsSchema>, bytes: Buffer): RoundMessages[] {
  let end = 0
  const rounds = lengths.map((round) =>
    round.map((list) => list.map((length) => bytes.subarray(end, (end += length)))),
  )
  if (end !== bytes.length)
    throw new Refusal('SESSION_ABORTED', 'The messages have different lengths')
  return rounds
}
