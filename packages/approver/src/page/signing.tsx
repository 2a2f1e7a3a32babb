import { useState } from 'preact/hooks'
import type { ChallengeView } from '../views.ts'
import { Note, Sentences } from './parts.tsx'
import { signChallenge } from './webauthn.ts'

/** Signature of challenges, whose sentences the page displays before it asks for the passkey. */
export interface Signing {
  /** Sentences of the statement for which the passkey is requested; null if there is none. */
  sentences: readonly string[] | null
  /** @throws Problem */
  sign: (challenge: ChallengeView) => ReturnType<typeof signChallenge>
}

export function useSigning(): Signing {
  const [sentences, setSentences] = useState<readonly string[] | null>(null)
  const sign = async (challenge: ChallengeView) => {
    setSentences(challenge.sentences)
    try {
      // Preact renders in a microtask, thus before this timer.
      await new Promise<void>((done) => {
        setTimeout(done)
      })
      return await signChallenge(challenge)
    } finally {
      setSentences(null)
    }
  }
  return { sentences, sign }
}

/** What the person signs, while their device asks for the passkey. */
export const SigningNote = ({ sentences }: Pick<Signing, 'sentences'>) =>
  sentences === null ? null : (
    <Note tone="info">
      <p>Your passkey signs this:</p>
      <Sentences lines={sentences} />
    </Note>
  )
