/** In what the families differ: their own word for it, in their folders. */
export { traitsOf } from '@custody/chains'
