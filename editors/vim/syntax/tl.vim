" Vim syntax of tl. Printed by `tl help --vim-syntax`.
if exists("b:current_syntax")
  finish
endif
syntax case match
syntax sync minlines=200
syntax keyword tlBuiltin abs acos adagrad adam adam_step adamw adapt add aggregate_neighbors
syntax keyword tlBuiltin all all_gather all_reduce all_to_all append apply_attention_mask apply_chat_template
syntax keyword tlBuiltin apply_mask approx_equal arange argmax argmin args argsort asin assert
syntax keyword tlBuiltin assert_about_eq assert_eq astype atan atan2 attention attention_with_cache
syntax keyword tlBuiltin avg_pool2d backward barrier batch_norm bce_with_logits bernoulli binary_cross_entropy
syntax keyword tlBuiltin bit_and bit_not bit_or bit_xor bmm broadcast broadcast_to buffer_stats
syntax keyword tlBuiltin cat causal_mask ceil chat checkpoint cholesky chr chunk clamp cleanup
syntax keyword tlBuiltin clear clear_cache clip_grad_norm clock clone cndl_embedding cndl_list_safetensors
syntax keyword tlBuiltin cndl_load_gguf_tensor cndl_load_safetensor cndl_rope cndl_save_model_safetensor
syntax keyword tlBuiltin cndl_save_safetensor combine_masks complex_score compute_hits_at_k
syntax keyword tlBuiltin compute_mean_rank compute_mrr compute_rank concat contains contiguous
syntax keyword tlBuiltin conv1d conv2d copy cos cosh count count_nonzero cross_entropy csv_rows
syntax keyword tlBuiltin cumprod cumsum custom_grad det detach detokenize detokenize_incremental
syntax keyword tlBuiltin detokenize_single device devices diag distmult_score div divmod dot
syntax keyword tlBuiltin dropout dtype e each_piece eigh einsum elu embed embedding_table empty
syntax keyword tlBuiltin ends_with entity_dim entity_onehot enumerate env eprint eq erf error
syntax keyword tlBuiltin exists exit exp expand expm1 extend eye factorial filter find find_all
syntax keyword tlBuiltin flatten flip floor floor_div format forward frequency_penalty from_array
syntax keyword tlBuiltin from_vec full fused_add_relu fused_affine fused_gelu_linear fused_mul_relu
syntax keyword tlBuiltin gather gcd ge gelu generate get get_tensor get_weight grad gradcheck
syntax keyword tlBuiltin grammar graph_attention group_norm gru_cell gt hardswish has_tensor
syntax keyword tlBuiltin help here hessian hook huber_loss image_folder index_of index_select
syntax keyword tlBuiltin inf input insert int_to_tokenids inv is_empty is_training isfinite
syntax keyword tlBuiltin isinf isnan jacobian join json_schema jvp keys kl_div layer_norm le
syntax keyword tlBuiltin leaky_relu len linear linear_attention linspace lion list_dir lnorm
syntax keyword tlBuiltin load load_audio load_facts load_image load_model load_model_f16 load_model_f32
syntax keyword tlBuiltin load_onnx load_tokenizer load_weight_cache_f16 load_weight_cache_f32
syntax keyword tlBuiltin load_weight_cache_gguf_f16 load_weight_cache_gguf_f32 loader local_rank
syntax keyword tlBuiltin log log10 log1p log2 log_sigmoid log_softmax logical_and logical_not
syntax keyword tlBuiltin logical_or logsumexp lower lstm_cell lt mae_loss map margin_ranking_loss
syntax keyword tlBuiltin masked_fill masked_select match_regex matmul max max_pool2d maximum
syntax keyword tlBuiltin mean median memory memory_report meta min min_p minimum mish mod mse_loss
syntax keyword tlBuiltin mul multinomial nan ndim ne neg new_tensor_buffer nll_loss nonzero
syntax keyword tlBuiltin norm normal normalize_features numel one_hot ones ones_like ord outer
syntax keyword tlBuiltin pad padding_mask panic parameters parse_json parts permute pi plot
syntax keyword tlBuiltin pop positional_encoding pow precompute_rope_cos precompute_rope_sin
syntax keyword tlBuiltin predict_head_complex predict_head_distmult predict_head_transe predict_tail_complex
syntax keyword tlBuiltin predict_tail_distmult predict_tail_transe presence_penalty print print_top_k
syntax keyword tlBuiltin prod push qr rand rand_like randint randn random_normal range_i rank
syntax keyword tlBuiltin read_csv read_file read_lines read_sql recv reduce reduce_scatter
syntax keyword tlBuiltin regex relational_aggregate relu rem remove repeat repeat_kv repetition_penalty
syntax keyword tlBuiltin replace replace_regex reset_peak_memory reshape reversed rms_norm
syntax keyword tlBuiltin rmsprop rng_state roll rope rotate_score round rsqrt same_file sample
syntax keyword tlBuiltin save save_audio save_facts save_image save_model scan scatter scatter_add
syntax keyword tlBuiltin script_path seed send serve set set_lr set_values sgd sgd_step shape
syntax keyword tlBuiltin shift_left shift_right sig sigmoid sign silu sin sinh sleep slice
syntax keyword tlBuiltin slice_last softmax softplus solve sort sorted split spmm sqrt square
syntax keyword tlBuiltin squeeze stack starts_with states std step stop_gradient string_length
syntax keyword tlBuiltin string_substring sub sum svd swiglu synchronize take tan tanh tap
syntax keyword tlBuiltin temperature temperature_sample tensors text_lines text_windows tile
syntax keyword tlBuiltin time to to_float to_int to_json to_list tokenize top_k top_k_sample
syntax keyword tlBuiltin top_p top_p_sample topk trace transe_score transpose tril trim triu
syntax keyword tlBuiltin trunc type typical_p uniform unique unsqueeze until_interrupt upper
syntax keyword tlBuiltin value_and_grad values var vjp vmap wait where world_size write_csv
syntax keyword tlBuiltin write_file zero zero_grad zeros zeros_like zip
syntax keyword tlType bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 q4_0
syntax keyword tlType q8_0 q6_k q4_1 q5_0 q5_1 q2_k q3_k q4_k q5_k iq4_nl iq4_xs tq1_0 tq2_0
syntax keyword tlType mxfp4 iq2_xxs iq2_xs iq2_s iq3_xxs iq3_s iq1_s iq1_m any int float string
syntax keyword tlType str String Tensor list List tuple dict Dict function range void model
syntax keyword tlType Model tokenizer Tokenizer KVCache TensorBuffer concept
syntax keyword tlKeyword fn let return
syntax keyword tlConditional if else match
syntax keyword tlRepeat for in while loop break continue
syntax keyword tlException try catch
syntax keyword tlBoolean true false
syntax keyword tlConstant none
syntax keyword tlOperator and or not as
syntax match tlDeclaration "^\s*\zs\%(struct\|impl\|import\|test\|bench\|main\|entity\|relation\)\>\ze\%(\s\+[A-Za-z_\"{]\|<\)"
syntax match tlStatement "\<\%(tensor\|with\|program\|embedding\|relation_embedding\|learn\|retract\|query\|infer\|why\|explain\)\>\ze\s\+[A-Za-z_{]"
syntax match tlModifier "\<\%(over\|learnable\|equivalence\|of\|no_grad\|self\)\>"
syntax match tlFunction "\%(\<fn\s\+\)\@<=\K\k*"
syntax match tlField "\%(\.\|::\)\@<=\K\k*"
syntax match tlNumber "\<\d[0-9_]*\%(\.\%([0-9_]\+\|[.A-Za-z_]\@!\)\)\=\%([eE][-+]\=\d\+\)\=\>"
syntax match tlNumber "\<0x\x\+\>"
syntax match tlNumber "\<0b[01]\+\>"
syntax match tlEscape contained "\\[ntr0\"\\]"
syntax match tlEscape contained "\\u\%(\x\{4}\|{\x\{1,6}}\)"
syntax match tlEscape contained "{{\|}}"
syntax region tlString start=+"+ skip=+\\.+ end=+"+ contains=tlEscape
syntax region tlString start=+\<r"+ end=+"+
syntax region tlString start=+\<f"+ skip=+\\.+ end=+"+ contains=tlEscape,tlPlaceholder
syntax region tlPlaceholder contained matchgroup=tlEscape start=+{{\@!+ end=+}+ contains=TOP
syntax match tlComment "//.*$"
syntax region tlComment start="/\*" end="\*/" contains=tlComment
syntax match tlComment "\%^#!.*$"
highlight default link tlKeyword Keyword
highlight default link tlConditional Conditional
highlight default link tlRepeat Repeat
highlight default link tlException Exception
highlight default link tlBoolean Boolean
highlight default link tlConstant Constant
highlight default link tlOperator Operator
highlight default link tlDeclaration Structure
highlight default link tlStatement Statement
highlight default link tlModifier StorageClass
highlight default link tlType Type
highlight default link tlBuiltin Function
highlight default link tlFunction Function
highlight default link tlNumber Number
highlight default link tlEscape SpecialChar
highlight default link tlString String
highlight default link tlComment Comment
let b:current_syntax = "tl"
