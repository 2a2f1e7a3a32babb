import { RequestError } from './errors.ts'

/** A whole number of a command, from 1 on. @throws RequestError that names it */
export function wholeNumber(value: unknown, name: string, max: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > max) {
    throw new RequestError(
      `${name} ${JSON.stringify(value)} is not a whole number from 1 to ${max}`,
    )
  }
  return value
}

/**
 * How far a command moves the time of the next block: not at all where it does not say. @throws
 * RequestError
 */
export const secondsOf = (value: unknown, max: number): number =>
  value === undefined ? 0 : wholeNumber(value, 'seconds', max)
