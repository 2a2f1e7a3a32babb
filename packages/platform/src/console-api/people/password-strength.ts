import { ApiError } from '../../core/errors.ts'

/**
 * Minimum zxcvbn score (0 to 4). A score of 3 means an estimate of more than 10^8 guesses, not
 * counting the cost of each hash.
 */
const SCORE_LEAST = 3
/**
 * Number of characters that are evaluated, because the time of the estimate grows with each
 * character.
 */
const JUDGED_CHARACTERS = 100

/** zxcvbn's names of weaknesses for which there is a specific message. */
const REASONS: Readonly<Record<string, string>> = {
  topTen: 'it is one of the most common passwords',
  topHundred: 'it is one of the most common passwords',
  common: 'it is a common password',
  similarToCommon: 'it is a common password with small changes',
  userInputs: 'it is made of your name, your e-mail address or the name of the workspace',
  namesByThemselves: 'it is a name',
  commonNames: 'it is a name',
  wordByItself: 'it is a single word',
  dates: 'it is a date',
  recentYears: 'it is a year',
  sequences: 'it is a sequence such as abcd or 6543',
  simpleRepeat: 'it repeats one character',
  extendedRepeat: 'it repeats one part',
  straightRow: 'it is a row of keys',
  keyPattern: 'it is a pattern of keys',
}

type Judge = (
  password: string,
  existing: string[],
) => { score: number; feedback: { warning: string | null } }
let judge: Promise<Judge> | undefined

/**
 * Loads the estimator of password strength when the first password is set, because its lists take
 * about 25 MB and 60 ms.
 */
async function load(): Promise<Judge> {
  const [{ ZxcvbnFactory }, { dictionary, adjacencyGraphs: graphs }] = await Promise.all([
    import('@zxcvbn-ts/core'),
    import('@zxcvbn-ts/language-common'),
  ])
  const factory = new ZxcvbnFactory({ dictionary: { ...dictionary }, graphs })
  return (password, names) => factory.check(password, names)
}

/**
 * Rejects a password that can be guessed early: a common password, a pattern, or words related to
 * the person.
 * @param names words about the person and the workspace that others know
 * @throws ApiError `INVALID_REQUEST`, field `password`
 */
export async function assertStrong(password: string, names: readonly string[]): Promise<void> {
  const words = names
    .flatMap((each) => [each, ...each.split(/[^\p{L}\p{N}]+/u)])
    .filter(({ length }) => length > 2)
  judge ??= load()
  const { score, feedback } = (await judge)(
    password.normalize('NFKC').slice(0, JUDGED_CHARACTERS),
    words,
  )
  if (score >= SCORE_LEAST) return
  const reason = REASONS[feedback.warning ?? ''] ?? 'it can be guessed quickly'
  const way = 'use a password from a password manager, or several unrelated words'
  throw new ApiError('INVALID_REQUEST', `password: ${reason}; ${way}`, { field: 'password' })
}
