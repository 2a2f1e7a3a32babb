import { RequestError } from './errors.ts'

/**
 * Reads an integer of a command, from 1 on.
 * @throws RequestError, naming it
 */
export function wholeNumber(value: unknown, name: string, max: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > max) {
    throw new RequestError(
      `${name} ${JSON.stringify(value)} is not a whole number from 1 to ${max}`,
    )
  }
  return value
}

/**
 * Reads the seconds by which a command moves the time of the next block; 0 if absent.
 * @throws RequestError
 */
export const secondsOf = (value: unknown, max: number): number =>
  value === undefined ? 0 : wholeNumber(value, 'seconds', max)
