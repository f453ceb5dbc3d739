import { IsInt, Max, Min } from 'class-validator';

/** The body of a reward. */
export class RewardDto {
  @IsInt()
  @Min(1)
  @Max(1_000)
  readonly points!: number;
}
