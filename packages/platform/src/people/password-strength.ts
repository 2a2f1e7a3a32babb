import { ApiError } from '../errors.ts'

/**
 * Of zxcvbn's scores from 0 to 4: 3 is an estimate of more than 10^8 guesses, without what slows
 * each of them here.
 */
const SCORE_LEAST = 3
/** What comes after so many characters is not looked at: an estimate takes longer with each. */
const JUDGED_CHARACTERS = 100

/** zxcvbn's names of what is weak in a password, as far as they say more than that it is. */
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
  known: string[],
) => { score: number; feedback: { warning: string | null } }
let judge: Promise<Judge> | undefined

/** Its lists take some 25 MB and 60 ms: they come with the first password that is set. */
async function load(): Promise<Judge> {
  const [{ ZxcvbnFactory }, { dictionary, adjacencyGraphs: graphs }] = await Promise.all([
    import('@zxcvbn-ts/core'),
    import('@zxcvbn-ts/language-common'),
  ])
  const factory = new ZxcvbnFactory({ dictionary: { ...dictionary }, graphs })
  return (password, known) => factory.check(password, known)
}

/**
 * Refuses a password that is found early by whoever guesses: a common one, a pattern, or the
 * person's own words.
 * @param known what others know of the person and the workspace
 * @throws ApiError `INVALID_REQUEST`, field `password`
 */
export async function assertStrong(password: string, known: readonly string[]): Promise<void> {
  const words = known
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
